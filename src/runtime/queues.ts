/** Which queues there are, and which are paused: both kept as documents of the store. */
import { HoldfastError } from '../core/errors.ts'
import { checkName } from '../core/submission.ts'
import type { Document } from '../store/store.ts'
import type { Session } from './session.ts'
import { withPatience } from './settle.ts'

export const QUEUE = 'queue/'
export const PAUSE = 'pause/'

/** The value of a pause's document. */
export interface Pause {
  readonly at: string
  readonly by: string
  readonly reason?: string
  /** Held by a move into this store, until that is finished; then the pause ends, unless it was also wanted for itself. */
  readonly move?: { readonly id: string; readonly from: string; readonly keep: boolean }
}

export const readPause = ({ value }: Document): Pause => {
  try {
    return JSON.parse(value) as Pause
  } catch {
    return { at: '', by: '' }
  }
}

const TRIES = 20

export class Queues {
  readonly #session: Session
  readonly #known = new Set<string>()
  readonly #listeners = new Set<() => void>()
  #paused: ReadonlySet<string> = new Set()
  #refreshedAt = Number.NEGATIVE_INFINITY

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

  /** Not listed any more, until a process that has not used it before submits to it. Its tasks, if it has any, stay. */
  async forget(queue: string): Promise<void> {
    const name = QUEUE + checkName(queue, 'queue')
    this.#known.delete(queue)
    const { documents } = this.#session.store
    await withPatience(this.#session, async () => {
      const document = await documents.get(name)
      // Somebody else wrote it meanwhile: then it is used.
      if (document !== null) await documents.delete(name, document.version)
    })
  }

  /** One that a move holds paused stays so after the move. */
  async pause(queue: string, reason?: string): Promise<void> {
    const wanted: Pause = {
      at: new Date(this.#session.time.now()).toISOString(),
      by: this.#session.name,
      ...(reason === undefined ? null : { reason }),
    }
    await this.#change(queue, (before) => {
      if (before === null) return wanted
      return before.move === undefined || before.move.keep
        ? before
        : { ...wanted, at: before.at, move: { ...before.move, keep: true } }
    })
    await this.refresh()
  }

  /** MOVE_UNDER_WAY while a move holds it, unless `force`: then tasks may run here and where they came from. */
  async resume(queue: string, force = false): Promise<void> {
    await this.#change(queue, (before) => {
      if (before?.move !== undefined && !force) {
        throw new HoldfastError(
          'MOVE_UNDER_WAY',
          `queue '${queue}' is paused by an unfinished move from ${before.move.from}`,
          { queue, from: before.move.from },
        )
      }
      return null
    })
    await this.refresh()
  }

  /** Reads the document, decides, and writes unless somebody else did. null: no pause. */
  async #change(queue: string, decide: (before: Pause | null) => Pause | null): Promise<void> {
    const name = PAUSE + checkName(queue, 'queue')
    const { documents } = this.#session.store
    for (let tries = 0; tries < TRIES; tries++) {
      const isDone = await withPatience(this.#session, async () => {
        const document = await documents.get(name)
        const before = document === null ? null : readPause(document)
        const after = decide(before)
        if (after === before) return true
        if (after === null) return documents.delete(name, document!.version)
        return (await documents.put(name, JSON.stringify(after), document?.version ?? 0)) !== null
      })
      if (isDone) return
    }
    throw new HoldfastError('STORE_CONFLICT', `the pause of queue '${queue}' changed under every one of ${TRIES} tries`)
  }

  /** Reads the pauses anew. */
  async refresh(): Promise<ReadonlySet<string>> {
    const began = this.#session.clock.mono()
    const documents = await withPatience(this.#session, () => this.#session.store.documents.list(PAUSE))
    this.#refreshedAt = began
    const paused = new Set(documents.map(({ name }) => name.slice(PAUSE.length)))
    const changed = paused.size !== this.#paused.size || [...paused].some((queue) => !this.#paused.has(queue))
    this.#paused = paused
    if (changed) for (const listener of this.#listeners) listener()
    return paused
  }

  /** As of a refresh that is not much older than `age`: who asks all the time need not read all the time. */
  async recent(age: number): Promise<ReadonlySet<string>> {
    return this.#session.clock.mono() - this.#refreshedAt < age ? this.#paused : this.refresh()
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
