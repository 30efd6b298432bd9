/** The subjects of a store: keys as subjects and back, and the subjects of messages. */
import { createHash } from 'node:crypto'
import { type Hint, parseHint } from '../kv/records/hint-names.ts'
import { minuteOf } from '../kv/records/names.ts'

/** Subjects are words separated by dots. A key's own dots, and characters that a KV bucket does not allow, are escaped. */
const SIGNS: Readonly<Record<string, string>> = { '/': '.', '=': '=3d', '~': '=7e', '.': '=2e' }
const READ: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries(SIGNS).map(([sign, text]) => [text, sign]),
)

const written = (text: string): string => text.replace(/[/=~.]/g, (sign) => SIGNS[sign]!)

const read = (subject: string): string => subject.replace(/\.|=3d|=7e|=2e/g, (text) => READ[text]!)

/** The ready messages that one consumer delivers. */
export interface WorkType {
  /** As written in a hint's key, escaped. */
  readonly queue: string
  /** `ALL_TYPES`: all types without a consumer of their own. */
  readonly type: string
  readonly priority: string
}

/** No escaped type equals this: in a key, `=` is followed by two hexadecimal digits. */
export const ALL_TYPES = '=all'

export const workTypeKey = ({ queue, type, priority }: WorkType): string => `${queue}/${type}~${priority}`

export const parseWorkType = (key: string): WorkType => {
  const [, queue, type, priority] = /^([^/]*)\/([^~]*)~(.*)$/.exec(key)!
  return { queue: queue!, type: type!, priority: priority! }
}

/** `ready/{queue}/{minute}/{id}~{type}~{priority}~…`, with the group before the minute if the task has one. */
export const workTypeOf = (hint: string): WorkType => {
  const parts = hint.split('/')
  const queue = parts[1]
  const [, type, priority] = parts.at(-1)!.split('~')
  return { queue: queue!, type: type!, priority: priority! }
}

const GROUPS = 'groups'

export class Subjects {
  readonly bucket: string
  readonly kv: string
  readonly ready: string
  readonly later: string

  constructor(bucket: string) {
    this.bucket = bucket
    this.kv = `KV_${bucket}`
    this.ready = `HOLDFAST_${bucket}_READY`
    this.later = `HOLDFAST_${bucket}_LATER`
  }

  /** The subjects of each stream. */
  get all(): { readonly kv: string; readonly ready: string; readonly later: string } {
    return {
      kv: `$KV.${this.bucket}.>`,
      ready: `holdfast.${this.bucket}.ready.>`,
      later: `holdfast.${this.bucket}.later.>`,
    }
  }

  ofKey(key: string): string {
    return `$KV.${this.bucket}.${written(key)}`
  }

  toKey(subject: string): string {
    return read(subject.slice(`$KV.${this.bucket}.`.length))
  }

  /** All keys in the folder of this prefix. The caller compares what follows the last slash. */
  under(prefix: string): string {
    const folder = prefix.slice(0, prefix.lastIndexOf('/') + 1)
    return folder === '' ? this.all.kv : `${this.ofKey(folder.slice(0, -1))}.>`
  }

  messagesOf({ queue, type, priority }: WorkType): string {
    return `holdfast.${this.bucket}.ready.${written(`${queue}/${type}/${priority}`)}.>`
  }

  /** Delivered by the consumer of this work type. */
  message(hint: string, { queue, type, priority }: WorkType): string {
    return `holdfast.${this.bucket}.ready.${written(`${queue}/${type}/${priority}`)}.${written(hint)}`
  }

  /** Whichever consumer delivers it. */
  anyMessage(hint: string): string {
    const { queue, priority } = workTypeOf(hint)
    return `holdfast.${this.bucket}.ready.${written(queue)}.*.${written(priority)}.${written(hint)}`
  }

  workTypeOfMessage(subject: string): WorkType {
    const [queue, type, priority] = subject.slice(`holdfast.${this.bucket}.ready.`.length).split('.', 3).map(read)
    return { queue: queue!, type: type!, priority: priority! }
  }

  /** All ready messages of a queue. null: of all queues. */
  messagesIn(queue: string | null): string {
    return queue === null ? this.all.ready : `holdfast.${this.bucket}.ready.${written(queue)}.>`
  }

  /** The last four words of the subject. */
  hintOfMessage(subject: string): string {
    return read(subject.split('.').slice(-4).join('.'))
  }

  laterAt(queue: string, instant: number): string {
    return `holdfast.${this.bucket}.later.${written(queue)}.${minuteOf(instant)}`
  }

  /** The hints of grouped tasks that are due, in the stream of hints for later. */
  grouped(queue: string, group: string, priority: number): string {
    return `holdfast.${this.bucket}.later.${written(queue)}.${GROUPS}.${group}.${priority}`
  }

  /** All of a queue. null: of all queues. */
  groupedIn(queue: string | null): string {
    return `holdfast.${this.bucket}.later.${queue === null ? '*' : written(queue)}.${GROUPS}.*.*`
  }

  /** null: hints by the minute. The queue is escaped, as in keys. */
  parseGrouped(subject: string): { readonly queue: string; readonly group: string; readonly priority: number } | null {
    const [queue, groups, group, priority] = subject.slice(`holdfast.${this.bucket}.later.`.length).split('.')
    return groups === GROUPS ? { queue: read(queue!), group: group!, priority: Number(priority) } : null
  }

  /** Escaped, as in keys. */
  queueOfLater(subject: string): string {
    return read(subject.slice(`holdfast.${this.bucket}.later.`.length).split('.')[0]!)
  }

  laterIn(queue: string): string {
    return `holdfast.${this.bucket}.later.${written(queue)}.*`
  }

  get wake(): string {
    return `holdfast.${this.bucket}.wake`
  }

  /** The name of the consumer of a work type. */
  consumerOf(type: WorkType): string {
    return createHash('sha256').update(workTypeKey(type)).digest('base64url').slice(0, 24)
  }
}

export const hintOf = (key: string): Hint => parseHint(key)!
