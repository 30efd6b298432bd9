/** Where everything is on the server: the engine's keys as subjects and back, and the subjects of the doorbell. */
import { createHash } from 'node:crypto'
import { type Hint, minuteOf, parseHint } from '../kv/names.ts'

/** Subjects are words with dots between them; a key's own dots and the signs that a KV bucket does not take are written out. */
const written = (text: string): string =>
  text.replace(/[=~.]/g, (sign) => `=${sign.charCodeAt(0).toString(16)}`).replaceAll('/', '.')

const read = (subject: string): string =>
  subject
    .replaceAll('.', '/')
    .replace(/=(3d|7e|2e)/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))

/** One bell for each kind of work: every worker that wants it waits at the same one. */
export interface Kind {
  /** As they stand in a hint's key. */
  readonly queue: string
  readonly type: string
  readonly priority: string
}

export const kindKey = ({ queue, type, priority }: Kind): string => `${queue}/${type}~${priority}`

export const parseKind = (key: string): Kind => {
  const [, queue, type, priority] = /^([^/]*)\/([^~]*)~(.*)$/.exec(key)!
  return { queue: queue!, type: type!, priority: priority! }
}

/** `ready/{queue}/{minute}/{id}~{type}~{priority}~…` */
export const kindOf = (hint: string): Kind => {
  const [, queue, , name] = hint.split('/')
  const [, type, priority] = name!.split('~')
  return { queue: queue!, type: type!, priority: priority! }
}

export class Subjects {
  readonly bucket: string
  readonly truth: string
  readonly bells: string
  readonly later: string

  constructor(bucket: string) {
    this.bucket = bucket
    this.truth = `KV_${bucket}`
    this.bells = `HOLDFAST_${bucket}_BELLS`
    this.later = `HOLDFAST_${bucket}_LATER`
  }

  /** Everything that a stream keeps. */
  get all(): { readonly truth: string; readonly bells: string; readonly later: string } {
    return {
      truth: `$KV.${this.bucket}.>`,
      bells: `holdfast.${this.bucket}.bell.>`,
      later: `holdfast.${this.bucket}.later.>`,
    }
  }

  ofKey(key: string): string {
    return `$KV.${this.bucket}.${written(key)}`
  }

  toKey(subject: string): string {
    return read(subject.slice(`$KV.${this.bucket}.`.length))
  }

  /** All keys that begin with the folders of this prefix; what follows the last slash is for the caller to compare. */
  under(prefix: string): string {
    const folder = prefix.slice(0, prefix.lastIndexOf('/') + 1)
    return folder === '' ? this.all.truth : `${this.ofKey(folder.slice(0, -1))}.>`
  }

  bellsOf(kind: Kind): string {
    return `holdfast.${this.bucket}.bell.${written(`${kind.queue}/${kind.type}/${kind.priority}`)}.>`
  }

  bell(hint: string): string {
    const { queue, type, priority } = kindOf(hint)
    return `holdfast.${this.bucket}.bell.${written(`${queue}/${type}/${priority}`)}.${written(hint)}`
  }

  /** All bells of a queue; null: of all. */
  bellsIn(queue: string | null): string {
    return queue === null ? this.all.bells : `holdfast.${this.bucket}.bell.${written(queue)}.>`
  }

  /** The hint for which a bell was rung: the last four words. */
  hintOfBell(subject: string): string {
    return read(subject.split('.').slice(-4).join('.'))
  }

  laterAt(queue: string, instant: number): string {
    return `holdfast.${this.bucket}.later.${written(queue)}.${minuteOf(instant)}`
  }

  laterIn(queue: string): string {
    return `holdfast.${this.bucket}.later.${written(queue)}.*`
  }

  get wake(): string {
    return `holdfast.${this.bucket}.wake`
  }

  /** Of the consumer that hands out one kind of work. */
  consumerOf(kind: Kind): string {
    return createHash('sha256').update(kindKey(kind)).digest('base64url').slice(0, 24)
  }
}

export const hintOf = (key: string): Hint => parseHint(key)!
