/** The options of a worker, checked and completed with defaults. */

import { HoldfastError } from '../../core/errors.ts'
import type { Task } from '../../core/observe/task-view.ts'
import { checkInteger, checkName, checkWorkerId } from '../../core/submission.ts'
import { type Duration, parseDuration } from '../../core/values/durations.ts'
import { checkOptionNames } from '../../core/values/option-names.ts'
import type { TaskDefinition } from '../definition.ts'
import type { TaskContext } from '../handler.ts'
import { newOp, type Session } from '../session.ts'
import { leaseTtlOf } from '../tasks/lease-ttl.ts'

/** Called as things happen. An error thrown by a hook is logged and changes nothing. */
export interface WorkerHooks {
  /** The worker looks for tasks from now on. */
  onStart?(): void
  /** It has stopped: all runs have ended or were given up. */
  onStop?(): void
  /** Before the handler is called. */
  onTaskStart?(task: Task): void
  /**
   * `error` is what the handler threw, or null. If the result could not be written (STALE_LEASE: another worker has the
   * task), `error` is that HoldfastError and `task` is the task as claimed.
   */
  onTaskEnd?(task: Task, error: (Error & { readonly code?: unknown }) | null): void
  /** The handler has not settled within `stuckAfter` of its timeout, cancel or lost lease. Its slot is given to other tasks. */
  onStuck?(task: Task): void
}

/** Options of a worker. */
export interface WorkerOptions {
  /** Unique per process start. Default: made from the host name, the process id and a random part. */
  readonly id?: string
  /** How many handlers run at once. Default 10. */
  readonly concurrency?: number
  /** The queues to serve, round-robin. Default ['default']. */
  readonly queues?: readonly string[]
  /** How long a lease lasts without a heartbeat. The default depends on the store: 5 s on SQLite and PostgreSQL. */
  readonly leaseTtl?: Duration
  /** How long running handlers may continue after stop. Default 30 s. */
  readonly stopTimeout?: Duration
  /** The longest time between two looks without a wake-up. Default 2 s. */
  readonly pollInterval?: Duration
  /** Submit the tasks of schedules that are due. Default true. */
  readonly scheduler?: boolean
  /** How long a handler may continue after its timeout, cancel or lost lease before its slot is given to other tasks. Default 30 s. */
  readonly stuckAfter?: Duration
  /** Stop, and reject `run` with WORKER_STUCK, when as many handlers are stuck as there are slots. Default false; true in `holdfast worker`. */
  readonly exitWhenStuck?: boolean
  /** Called as things happen. */
  readonly hooks?: WorkerHooks
  /**
   * Called for each failed run with the error, the task after the run (status `failed` means it is dead) and the context of
   * the run. For error trackers such as Sentry. An error thrown by it is logged and changes nothing.
   */
  readonly onError?: (error: Error, task: Task, ctx: TaskContext) => void
}

/** Fires schedules while workers run: see runtime/schedules. */
export interface SchedulerOfWorker {
  start(): void
  fireDue(): Promise<void>
  stop(): Promise<void>
}

export interface WorkerSettings {
  readonly id: string
  readonly concurrency: number
  readonly queues: readonly string[]
  readonly leaseTtl: number
  readonly stopTimeout: number
  readonly pollInterval: number
  readonly scheduler: boolean
  readonly stuckAfter: number
  readonly exitWhenStuck: boolean
  readonly hooks: WorkerHooks
  readonly onError: WorkerOptions['onError']
}

const OPTIONS: ReadonlySet<string> = new Set<keyof WorkerOptions>([
  'id',
  'concurrency',
  'queues',
  'leaseTtl',
  'stopTimeout',
  'pollInterval',
  'scheduler',
  'stuckAfter',
  'exitWhenStuck',
  'hooks',
  'onError',
])
const HOOKS: ReadonlySet<string> = new Set<keyof WorkerHooks>([
  'onStart',
  'onStop',
  'onTaskStart',
  'onTaskEnd',
  'onStuck',
])

export const workerSettings = (session: Session, options: WorkerOptions): WorkerSettings => {
  checkOptionNames(options, OPTIONS, 'worker')
  checkOptionNames(options.hooks ?? {}, HOOKS, 'hooks')
  return settingsOf(session, options)
}

const settingsOf = (session: Session, options: WorkerOptions): WorkerSettings => ({
  id: checkWorkerId(options.id ?? `${session.name}/${newOp()}`),
  concurrency: checkInteger(options.concurrency ?? 10, 'concurrency', 1, 10_000),
  queues: checkQueues(options.queues ?? ['default']),
  leaseTtl: leaseTtlOf(session, options.leaseTtl),
  stopTimeout: parseDuration(options.stopTimeout ?? '30s', 'stopTimeout'),
  pollInterval: parseDuration(options.pollInterval ?? '2s', 'pollInterval'),
  scheduler: options.scheduler ?? true,
  stuckAfter: parseDuration(options.stuckAfter ?? '30s', 'stuckAfter'),
  exitWhenStuck: options.exitWhenStuck ?? false,
  hooks: options.hooks ?? {},
  onError: options.onError,
})

const checkQueues = (names: readonly string[]): readonly string[] => {
  if (!Array.isArray(names))
    throw new HoldfastError('INVALID_OPTION', "queues must be a list: ['mail']", { field: 'queues' })
  if (names.length === 0)
    throw new HoldfastError('INVALID_OPTION', 'queues is empty: name at least one', { field: 'queues' })
  return [...new Set(names.map((name) => checkName(name, 'queues')))]
}

/** Throws if the definition names a queue that the worker does not serve: its tasks would wait forever. */
export const mustServe = (queues: readonly string[], { type, options: { queue } }: TaskDefinition): void => {
  if (queue === undefined || queues.includes(queue)) return
  throw new HoldfastError(
    'INVALID_OPTION',
    `'${type}' goes to queue '${queue}', which this worker does not serve: add it, worker({ queues: [${[...queues, queue].map((name) => `'${name}'`).join(', ')}] })`,
    { field: 'queues' },
  )
}
