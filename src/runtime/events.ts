/** This process's moves, told to whoever listens. */
import { Task } from '../core/snapshot.ts'
import { applyChange, type Change, type Instant, type TaskRecord, type TaskStatus } from '../core/task.ts'

export interface MoveEvent {
  readonly move: string
  readonly at: Instant
  readonly by: string
  readonly from: TaskStatus | null
  /** After the move. */
  readonly task: Task
}

type Listener = (event: MoveEvent) => void

export class Events {
  readonly #listeners = new Set<Listener>()

  /** Costs nothing while nobody listens. */
  moved(before: TaskRecord, change: Change): void {
    if (this.#listeners.size > 0) this.#tell(change.entry, change.from, applyChange(before, change))
  }

  submitted(task: TaskRecord): void {
    if (this.#listeners.size > 0) this.#tell(task.history[0]!, null, task)
  }

  claimed(task: TaskRecord): void {
    if (this.#listeners.size === 0 || task.lease === null) return
    this.#tell({ move: 'claim', at: task.lease.claimedAt, by: task.lease.workerId }, 'pending', task)
  }

  #tell({ move, at, by }: { move: string; at: Instant; by: string }, from: TaskStatus | null, after: TaskRecord): void {
    const event: MoveEvent = { move, at, by, from, task: new Task(after) }
    for (const listener of this.#listeners) listener(event)
  }

  on(listener: Listener): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Moves from now on, until `signal` aborts or the loop is left. */
  async *stream(signal?: AbortSignal): AsyncGenerator<MoveEvent, void, undefined> {
    const waiting: MoveEvent[] = []
    let ring = (): void => {}
    const stop = this.on((event) => {
      waiting.push(event)
      ring()
    })
    const wake = (): void => ring()
    signal?.addEventListener('abort', wake)
    try {
      while (!signal?.aborted) {
        while (waiting.length > 0) yield waiting.shift()!
        if (!signal?.aborted) await new Promise<void>((done) => (ring = done))
      }
    } finally {
      stop()
      signal?.removeEventListener('abort', wake)
    }
  }
}
