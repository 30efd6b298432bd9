/**
 * Messages between processes that no stream stores, and the listeners of this process. An announcement can be lost: what it
 * says is also found by polling, only later.
 */
import type { Connected } from '../connection/connection.ts'
import type { Subjects } from '../subjects.ts'

/** Queues are named as in keys, escaped. */
type Listener = (queues: readonly string[]) => void
/**
 * `type`: a new work type. `separate`: a work type that some worker of its queue does not handle. `later`: a queue has a new
 * hint for the near future. `group`: a group has a new hint.
 */
export type Topic = 'type' | 'separate' | 'later' | 'group'

/** Announcements of this many milliseconds share one message. */
const BATCH_DELAY = 2

export class Announcements {
  readonly #connected: Connected
  readonly #subject: string
  readonly #sender = Math.random().toString(36).slice(2)
  readonly #handlers = new Map<Topic, (key: string) => void>()
  readonly #listeners = new Set<Listener>()
  readonly #outgoing = new Set<string>()
  readonly #queuesToWake = new Set<string>()
  #sendTimer: NodeJS.Timeout | null = null
  #wakeTimer: NodeJS.Timeout | null = null

  constructor(connected: Connected, subjects: Subjects) {
    this.#connected = connected
    this.#subject = subjects.wake
    connected.nc.subscribe(this.#subject, {
      callback: (error, message) => {
        if (error === null) this.#receive(message.string())
      },
    })
  }

  /** The handler runs before listeners are woken. */
  on(topic: Topic, handler: (key: string) => void): void {
    this.#handlers.set(topic, handler)
  }

  /** Tells other processes soon. The key begins with the queue. */
  send(topic: Topic, key: string): void {
    this.#outgoing.add(`${topic} ${key}`)
    this.#sendTimer ??= setTimeout(() => this.#flush(), BATCH_DELAY)
  }

  #flush(): void {
    this.#sendTimer = null
    const text = [this.#sender, ...this.#outgoing].join('\n')
    this.#outgoing.clear()
    if (!this.#connected.nc.isClosed()) this.#connected.nc.publish(this.#subject, text)
  }

  #receive(text: string): void {
    const [from, ...lines] = text.split('\n')
    if (from === this.#sender) return
    const queues = new Set<string>()
    for (const line of lines) {
      const [topic, key = ''] = line.split(' ') as [Topic, string?]
      this.#handlers.get(topic)?.(key)
      queues.add(key.split('/')[0]!)
    }
    this.wake([...queues])
  }

  get hasListeners(): boolean {
    return this.#listeners.size > 0
  }

  wake(queues: readonly string[]): void {
    for (const listener of this.#listeners) listener(queues)
  }

  /** Waits a moment, because the task is written after its ready message. */
  wakeSoon(queue: string): void {
    this.#queuesToWake.add(queue)
    this.#wakeTimer ??= setTimeout(() => {
      this.#wakeTimer = null
      const queues = [...this.#queuesToWake]
      this.#queuesToWake.clear()
      this.wake(queues)
    }, BATCH_DELAY)
  }

  listen(listener: Listener): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  close(): void {
    this.#listeners.clear()
    if (this.#sendTimer === null) return
    clearTimeout(this.#sendTimer)
    this.#flush()
  }
}
