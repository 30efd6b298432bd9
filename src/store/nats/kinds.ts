/** Which kinds of work a queue has ever had, so that a look knows at which bells to wait; and who is told when one rings. */
import type { Connected } from './connection.ts'
import { isWrongSequence } from './errors.ts'
import { type Kind, kindKey, parseKind, type Subjects } from './subjects.ts'

type Listener = (queues: readonly string[]) => void

const KINDS = 'kinds/'
/** How long a list is good for: new kinds of other processes are heard of sooner, when their first bell rings. */
const LIST_EVERY = 2_000
/** Between the bell and its task there is another write; and many bells are one message. */
const TELL_AFTER = 2

interface Queue {
  readonly kinds: Map<string, Kind>
  listedAt: number
}

export class Kinds {
  readonly #connected: Connected
  readonly #subjects: Subjects
  readonly #rings: (kind: Kind) => void
  readonly #queues = new Map<string, Queue>()
  readonly #written = new Map<string, Promise<void>>()
  readonly #listeners = new Set<Listener>()
  readonly #toTell = new Set<string>()
  readonly #me = Math.random().toString(36).slice(2)
  #telling: NodeJS.Timeout | null = null

  constructor(connected: Connected, subjects: Subjects, rings: (kind: Kind) => void) {
    this.#connected = connected
    this.#subjects = subjects
    this.#rings = rings
    connected.nc.subscribe(subjects.wake, {
      callback: (error, message) => {
        if (error === null) this.#heard(message.string())
      },
    })
  }

  #queue(name: string): Queue {
    const queue = this.#queues.get(name) ?? { kinds: new Map(), listedAt: Number.NEGATIVE_INFINITY }
    this.#queues.set(name, queue)
    return queue
  }

  /** Known to everybody from now on. */
  add(kind: Kind): Promise<void> {
    const key = kindKey(kind)
    const written = this.#written.get(key)
    if (written !== undefined) return written
    this.#queue(kind.queue).kinds.set(key, kind)
    const writing = this.#write(key)
    this.#written.set(key, writing)
    writing.catch(() => this.#written.delete(key))
    return writing
  }

  async #write(key: string): Promise<void> {
    try {
      await this.#connected.requests.write(this.#subjects.ofKey(KINDS + key), '', { last: 0 })
    } catch (error) {
      if (!isWrongSequence(error)) throw error
    }
  }

  async in(queue: string): Promise<readonly Kind[]> {
    const known = this.#queue(queue)
    if (performance.now() - known.listedAt > LIST_EVERY) {
      known.listedAt = performance.now()
      const filter = this.#subjects.under(`${KINDS}${queue}/`)
      const { state } = await this.#connected.jsm.streams.info(this.#subjects.truth, { subjects_filter: filter })
      for (const subject of Object.keys(state.subjects ?? {})) {
        const key = this.#subjects.toKey(subject).slice(KINDS.length)
        known.kinds.set(key, parseKind(key))
      }
    }
    return [...known.kinds.values()]
  }

  /** Tells everybody, soon. */
  rang(kind: Kind): void {
    this.#rings(kind)
    this.#toTell.add(kindKey(kind))
    this.#telling ??= setTimeout(() => this.#tell(), TELL_AFTER)
  }

  #tell(): void {
    this.#telling = null
    const told = [this.#me, ...this.#toTell].join('\n')
    this.#toTell.clear()
    if (!this.#connected.nc.isClosed()) this.#connected.nc.publish(this.#subjects.wake, told)
  }

  #heard(told: string): void {
    const [from, ...keys] = told.split('\n')
    if (from === this.#me) return
    const kinds = keys.map(parseKind)
    for (const kind of kinds) {
      this.#queue(kind.queue).kinds.set(kindKey(kind), kind)
      this.#rings(kind)
    }
    this.wake([...new Set(kinds.map(({ queue }) => queue))])
  }

  /** Looking is worth while, here. */
  wake(queues: readonly string[]): void {
    for (const listener of this.#listeners) listener(queues)
  }

  /** Told of bells that other processes ring, by the queue's name as it stands in keys. */
  listen(listener: Listener): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  close(): void {
    this.#listeners.clear()
    if (this.#telling === null) return
    clearTimeout(this.#telling)
    this.#tell()
  }
}
