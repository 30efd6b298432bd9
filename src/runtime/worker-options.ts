/** What a worker may be told, checked and filled with defaults. */
import { type Duration, parseDuration } from '../core/durations.ts'
import { HoldfastError } from '../core/errors.ts'
import type { Task } from '../core/snapshot.ts'
import { checkInteger, checkName, checkWorkerId } from '../core/submission.ts'
import { newOp, type Session } from './session.ts'

/** Called as things happen; what a hook throws is logged and changes nothing. */
export interface WorkerHooks {
  onStart?(): void
  onStop?(): void
  onTaskStart?(task: Task): void
  /** `error` is given when the attempt's result could not be written: STALE_LEASE when somebody else has the task. */
  onTaskEnd?(task: Task, error: HoldfastError | null): void
}

export interface WorkerOptions {
  /** Unique per process start. Made from host, process and chance when left out. */
  readonly id?: string
  /** Handlers at once. Default 10. */
  readonly concurrency?: number
  /** Served round-robin. Default ['default']. */
  readonly queues?: readonly string[]
  /** How long a lease lasts without a heartbeat. Default: the store's, 5 s on SQLite and PostgreSQL. */
  readonly leaseTtl?: Duration
  /** How long running handlers may go on after stop. Default 30 s. */
  readonly stopTimeout?: Duration
  /** The longest time between two looks while nothing wakes the worker. Default 2 s. */
  readonly pollInterval?: Duration
  /** Make the tasks of schedules that are due. Default true. */
  readonly scheduler?: boolean
  readonly hooks?: WorkerHooks
}

export interface WorkerSettings {
  readonly id: string
  readonly concurrency: number
  readonly queues: readonly string[]
  readonly leaseTtl: number
  readonly stopTimeout: number
  readonly pollInterval: number
  readonly scheduler: boolean
  readonly hooks: WorkerHooks
}

export const workerSettings = (session: Session, options: WorkerOptions): WorkerSettings => ({
  id: checkWorkerId(options.id ?? `${session.name}/${newOp()}`),
  concurrency: checkInteger(options.concurrency ?? 10, 'concurrency', 1, 10_000),
  queues: checkQueues(options.queues ?? ['default']),
  leaseTtl: checkLeaseTtl(options, session),
  stopTimeout: parseDuration(options.stopTimeout ?? '30s', 'stopTimeout'),
  pollInterval: parseDuration(options.pollInterval ?? '2s', 'pollInterval'),
  scheduler: options.scheduler ?? true,
  hooks: options.hooks ?? {},
})

const checkQueues = (names: readonly string[]): readonly string[] => {
  if (names.length === 0) {
    throw new HoldfastError('INVALID_OPTION', 'queues is empty: name at least one', { field: 'queues' })
  }
  return [...new Set(names.map((name) => checkName(name, 'queues')))]
}

const SHORTEST_LEASE = 100

const checkLeaseTtl = ({ leaseTtl }: WorkerOptions, { store, time }: Session): number => {
  const length = leaseTtl === undefined ? store.leaseTtl : parseDuration(leaseTtl, 'leaseTtl')
  const least = Math.max(SHORTEST_LEASE, Math.ceil(2 * time.uncertainty))
  if (length >= least) return length
  const why = least > SHORTEST_LEASE ? ", twice what the store's clock is uncertain by" : ''
  throw new HoldfastError('INVALID_OPTION', `leaseTtl is ${length} ms; the least is ${least} ms${why}`, {
    field: 'leaseTtl',
  })
}
