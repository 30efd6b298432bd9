/** Which queues there are, and which are paused: both kept as documents of the store. */
import { checkName } from '../core/submission.ts'
import type { Session } from './session.ts'
import { withPatience } from './settle.ts'

const QUEUE = 'queue/'
const PAUSE = 'pause/'

export class Queues {
  readonly #session: Session
  readonly #known = new Set<string>()
  readonly #listeners = new Set<() => void>()
  #paused: ReadonlySet<string> = new Set()

  constructor(session: Session) {
    this.#session = session
  }

  /**
   * Remembered in the store on first use by this process, so that a queue is listed even when it is empty. Never
   * rejects: whether a task was stored must not depend on it, and the next submit tries again.
   */
  async know(queue: string): Promise<void> {
    if (this.#known.has(queue)) return
    this.#known.add(queue)
    try {
      await withPatience(this.#session, () => this.#session.store.documents.put(QUEUE + queue, '{}', 0))
    } catch {
      this.#known.delete(queue)
    }
  }

  async names(): Promise<readonly string[]> {
    const documents = await this.#session.store.documents.list(QUEUE)
    return documents.map(({ name }) => name.slice(QUEUE.length))
  }

  async pause(queue: string, reason?: string): Promise<void> {
    const name = PAUSE + checkName(queue, 'queue')
    const value = JSON.stringify({
      at: new Date(this.#session.time.now()).toISOString(),
      by: this.#session.name,
      ...(reason === undefined ? null : { reason }),
    })
    await withPatience(this.#session, () => this.#session.store.documents.put(name, value, 0))
    await this.refresh()
  }

  async resume(queue: string): Promise<void> {
    const name = PAUSE + checkName(queue, 'queue')
    await withPatience(this.#session, async () => {
      const document = await this.#session.store.documents.get(name)
      if (document) await this.#session.store.documents.delete(name, document.version)
    })
    await this.refresh()
  }

  /** Reads the pauses anew. */
  async refresh(): Promise<ReadonlySet<string>> {
    const documents = await withPatience(this.#session, () => this.#session.store.documents.list(PAUSE))
    const paused = new Set(documents.map(({ name }) => name.slice(PAUSE.length)))
    const changed = paused.size !== this.#paused.size || [...paused].some((queue) => !this.#paused.has(queue))
    this.#paused = paused
    if (changed) for (const listener of this.#listeners) listener()
    return paused
  }

  /** As of the last refresh. */
  isPaused(queue: string): boolean {
    return this.#paused.has(queue)
  }

  /** Called when a refresh found a difference. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }
}
