/** Reports the moves of this process to its listeners. */

import { Task } from '../../core/observe/task-view.ts'
import { applyChange, type Change, type Instant, type TaskRecord, type TaskStatus } from '../../core/task.ts'
import type { Logger } from './logger.ts'
import { RunLog } from './run-log.ts'

/** One move of a task, as this process made it. */
export interface MoveEvent {
  /** Its name: `submit`, `claim`, `complete`, … */
  readonly move: string
  /** The store's time. */
  readonly at: Instant
  /** The worker, or the name of the client. */
  readonly by: string
  /** The status before it; null for a submit. */
  readonly from: TaskStatus | null
  /** The task after the move. */
  readonly task: Task
}

type Listener = (event: MoveEvent) => void

export class Events {
  readonly #listeners = new Set<Listener>()
  /** Aborts when the client is closed, which ends loops over its events. */
  readonly #closing = new AbortController()

  readonly #logger: Logger
  readonly #runs: RunLog

  constructor(logger: Logger) {
    this.#logger = logger
    this.#runs = new RunLog(logger)
  }

  get closing(): AbortSignal {
    return this.#closing.signal
  }

  close(): void {
    this.#closing.abort()
    this.#listeners.clear()
  }

  /** Does nothing unless there are listeners or the move is a failure. */
  moved(before: TaskRecord, change: Change): void {
    this.#runs.moved(before, change)
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
    for (const listener of this.#listeners) this.#call(listener, event)
  }

  /** An error in a listener is logged: the move is already written. */
  #call(listener: Listener, event: MoveEvent): void {
    try {
      listener(event)
    } catch (error) {
      this.#logger.error(`a listener threw: ${error instanceof Error ? error.message : String(error)}`, {
        task: event.task.id,
        move: event.move,
      })
    }
  }

  on(listener: Listener): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Moves from the time of this call (not of the first iteration) until `asked` aborts, the client is closed, or the loop is left. */
  stream(asked?: AbortSignal): AsyncGenerator<MoveEvent, void, undefined> {
    const waiting: MoveEvent[] = []
    let ring = (): void => {}
    const stop = this.on((event) => {
      waiting.push(event)
      ring()
    })
    const signal = asked === undefined ? this.#closing.signal : AbortSignal.any([asked, this.#closing.signal])
    return tell(waiting, signal, (wake) => (ring = wake), stop)
  }
}

async function* tell(
  waiting: MoveEvent[],
  signal: AbortSignal,
  onRing: (wake: () => void) => void,
  stop: () => void,
): AsyncGenerator<MoveEvent, void, undefined> {
  let wake = (): void => {}
  const rung = (): void => wake()
  onRing(rung)
  signal.addEventListener('abort', rung)
  try {
    while (!signal.aborted) {
      while (waiting.length > 0) yield waiting.shift()!
      if (!signal.aborted) await new Promise<void>((done) => (wake = done))
    }
  } finally {
    stop()
    signal.removeEventListener('abort', rung)
  }
}
