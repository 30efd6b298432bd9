/** How a system is used by a producer process and by a worker process. One file in adapters/ for each library. */
import type { Place } from '../system.ts'
import type { Input, Shape, Task } from './tasks.ts'

/** What a cell needs, beyond the tasks' shape. */
export interface Use {
  readonly place: Place
  readonly shape: Shape
  /** Tasks arrive one by one at a waiting worker; otherwise all of them exist before the worker starts. */
  readonly isLive: boolean
}

export interface Adapter {
  /** Also creates tables and queues. Workers connect afterwards. */
  openProducer(use: Use): Promise<Producer>
  openWorker(use: Use): Promise<Worker>
}

export interface Producer {
  /** Tasks with the same destination can be submitted by one call. */
  destinationOf(task: Task): string
  /** One call of the library, for tasks of one destination. */
  submitMany(tasks: readonly Task[]): Promise<void>
  submit(task: Task): Promise<void>
  /** Tasks that have not completed. */
  countUnfinished(): Promise<number>
  close(): Promise<void>
}

export interface Worker {
  /** Starts again after a stop. */
  start(events: WorkerEvents): Promise<void>
  stop(): Promise<void>
  close(): Promise<void>
}

export interface WorkerEvents {
  /** Called first by the handler. Throws if the task must fail. */
  started(input: Input, isFirstAttempt: boolean): void
  ended(isFirstAttempt: boolean, isCompleted: boolean): void
}

/**
 * The delay after a failure. graphile-worker's first delay is e seconds and cannot be changed, so all others use the same, as
 * closely as they can.
 */
export const RETRY_DELAY_MS = 2_718
