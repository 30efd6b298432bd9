/** What an application holds: submit, look, move, work. Each method says what it does in one line and does it elsewhere. */

import type { Finding } from '../core/diagnosis.ts'
import { type Duration, parseDuration } from '../core/durations.ts'
import { HoldfastError } from '../core/errors.ts'
import { keyIsLive } from '../core/idempotency.ts'
import * as machine from '../core/machine.ts'
import { Task } from '../core/snapshot.ts'
import { checkId, checkInteger, checkName, checkWorkerId, DEFAULTS, type SubmitOptions } from '../core/submission.ts'
import type { HistoryEntry, Holder, Instant } from '../core/task.ts'
import { DeadLetters } from './dead-letters.ts'
import { asDefinition, type TaskDefinition, withDefaults } from './definition.ts'
import type { MoveEvent } from './events.ts'
import { type Explanation, explain } from './explain.ts'
import { exportLines } from './exporting.ts'
import { Firing } from './firing.ts'
import { type FollowOptions, follow, type TaskChange } from './following.ts'
import { type ImportOptions, type ImportReport, importLines, type OpenLines } from './importing.ts'
import {
  type Count,
  type CountOptions,
  countTasks,
  type ListOptions,
  listTasks,
  type QueueStats,
  queueStats,
  type TaskPage,
  type TaskQuery,
} from './inspect.ts'
import type { TaskLease } from './lease.ts'
import { type CancelManyOptions, cancelMany } from './many.ts'
import type { EachResult } from './move-each.ts'
import { type MoveOptions, type MoveReport, moveBetween } from './moving.ts'
import { cancelById, claimById, claimDue, deleteById, leaseOf, moveById } from './operations.ts'
import { Queues } from './queues.ts'
import { liveWorkers, type WorkerInfo } from './registry.ts'
import { type PruneOptions, pruneEnded, Retention, type RetentionOptions } from './retention.ts'
import { Scheduler } from './scheduler.ts'
import { Schedules } from './schedules.ts'
import { newOp, type Session } from './session.ts'
import { read } from './settle.ts'
import { type SubmitResult, Submitter } from './submit.ts'
import type { Tagging } from './tracing.ts'
import { outputOf, Waiting, type WaitOptions } from './waiting.ts'
import { Worker } from './worker.ts'
import type { WorkerOptions } from './worker-options.ts'

export interface SubmitManyItem extends SubmitOptions {
  readonly type: string | TaskDefinition
  readonly input: unknown
}

export interface ClaimOptions {
  readonly workerId: string
  readonly leaseTtl?: Duration
}

export interface ClaimNextOptions extends ClaimOptions {
  /** Default 'default'. */
  readonly queue?: string
  /** Default: any. */
  readonly types?: readonly string[]
}

type AnyDefinition<Input, Output> = TaskDefinition<Input, never, Output> | TaskDefinition<Input, unknown, Output>

export class Client {
  readonly #session: Session
  readonly #queues: Queues
  readonly #submitter: Submitter
  readonly #waiting: Waiting
  readonly #retention: Retention | null
  readonly #scheduler: Scheduler
  readonly #schedules: Schedules
  readonly #deadLetters: DeadLetters
  readonly #workers = new Set<Worker>()
  #closed = false

  constructor(session: Session, retention?: RetentionOptions) {
    this.#session = session
    this.#queues = new Queues(session)
    this.#submitter = new Submitter(session, this.#queues)
    this.#waiting = new Waiting(session)
    this.#scheduler = new Scheduler(session, this.#submitter)
    this.#schedules = new Schedules(session, this.#submitter, this.#scheduler)
    this.#deadLetters = new DeadLetters(session, this.#waiting)
    this.#retention = retention === undefined ? null : new Retention(session, retention)
  }

  /** Where the tasks are, without secrets. */
  get address(): string {
    return this.#session.store.address
  }

  /** The store's time. */
  async now(): Promise<Instant> {
    return (await this.#open().store.now()).at
  }

  // ── submitting ───────────────────────────────────────────────────────────────────────────────────────────────

  /** When this resolves, the task is stored as durably as the store can. With `tx`, when the caller's transaction commits. */
  submit<Input, Output>(
    definition: AnyDefinition<Input, Output>,
    input: Input,
    options?: SubmitOptions & { readonly tx?: unknown },
  ): Promise<Task<Input, Output>>
  submit(type: string, input: unknown, options?: SubmitOptions & { readonly tx?: unknown }): Promise<Task>
  submit(
    type: string | TaskDefinition,
    input: unknown,
    options: SubmitOptions & { readonly tx?: unknown } = {},
  ): Promise<Task> {
    if (this.#closed) return Promise.reject(closedError())
    const { tx, ...given } = options
    const definition = asDefinition(type)
    const wanted = withDefaults(definition, given)
    const put = (chosen: SubmitOptions): Promise<Task> => {
      const item = { definition, input, options: chosen }
      return tx === undefined ? this.#submitter.one(item) : this.#submitter.inTransaction(item, tx)
    }
    const { tracing } = this.#session
    if (tracing === null) return put(wanted)
    const what = { type: definition.type, queue: wanted.queue ?? DEFAULTS.queue }
    return tracing.submit(what, (tagged) => put(tagged(wanted)))
  }

  /** Each item has its own result, in order; a bad one does not stop the others. `shared` options apply to all. */
  async submitMany(items: readonly SubmitManyItem[], shared: SubmitOptions = {}): Promise<SubmitResult[]> {
    this.#open()
    const { id, idempotencyKey } = shared
    if (id !== undefined || idempotencyKey !== undefined) {
      throw new HoldfastError(
        'INVALID_OPTION',
        `${id !== undefined ? 'id' : 'idempotencyKey'} belongs to one task: give it on the item`,
        { field: 'shared' },
      )
    }
    const put = (tagged: Tagging): Promise<SubmitResult[]> =>
      this.#submitter.many(
        items.map(({ type, input, ...own }) => {
          const definition = asDefinition(type)
          return { definition, input, options: tagged(withDefaults(definition, { ...shared, ...own })) }
        }),
      )
    const { tracing } = this.#session
    if (tracing === null) return put((options) => options)
    return tracing.submit({ type: `${items.length} tasks`, queue: shared.queue ?? DEFAULTS.queue }, put)
  }

  // ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────

  /** TASK_NOT_FOUND when there is none. */
  async get(id: string): Promise<Task> {
    return new Task(await read(this.#open(), checkId(id)))
  }

  /** TASK_NOT_FOUND when the key was never used, or has ended. */
  async getByIdempotencyKey(key: string): Promise<Task> {
    const session = this.#open()
    const found = await session.store.find(key)
    if (found?.task && keyIsLive(found.key, true, session.time.now())) return new Task(found.task)
    throw new HoldfastError('TASK_NOT_FOUND', `no task has the idempotency key '${key}'`, { key })
  }

  async history(id: string): Promise<readonly HistoryEntry[]> {
    return (await this.get(id)).history
  }

  list(options: ListOptions = {}): Promise<TaskPage> {
    return this.#do((session) => listTasks(session, options))
  }

  /** Up to `cap`, which is 100,000 when left out. */
  count(query: TaskQuery = {}, options: CountOptions = {}): Promise<Count> {
    return this.#do((session) => countTasks(session, query, options))
  }

  /** Why it is not running, or that it is: one honest sentence, and the facts that it rests on. */
  why(id: string): Promise<Explanation> {
    return this.#do((session) => explain(session, this.#queues, id))
  }

  /** Those that are alive: a worker that has not been heard of for 30 s is not. */
  workers(): Promise<WorkerInfo[]> {
    return this.#do(liveWorkers)
  }

  /** Is the store well, and those who use it? What was found, and how to mend it. Changes nothing. */
  examine(): Promise<Finding[]> {
    return this.#do(async (session) => {
      // Seldom asked for, and with many words: not to be loaded by every short-lived process.
      const { examine } = await import('./examination.ts')
      return examine(session, this.#queues, new Firing(session, this.#submitter, newOp()))
    })
  }

  /** Of every queue, each count up to `cap`, or beyond it where that costs nothing; `capped` names those that may be more. */
  stats(options: { readonly cap?: number } = {}): Promise<QueueStats[]> {
    return this.#do((session) => queueStats(session, this.#queues, options.cap))
  }

  /** The output of a task that completes; rejects with TASK_FAILED, TASK_CANCELLED or TASK_EXPIRED when it ends otherwise. */
  async wait<Output = unknown>(
    task: Task<never, Output> | Task<unknown, Output> | string,
    options: WaitOptions = {},
  ): Promise<Output> {
    this.#open()
    const id = typeof task === 'string' ? checkId(task) : task.id
    return outputOf(await this.#waiting.forEnd(id, options)) as Output
  }

  /** The task once it has ended, whichever way. */
  async waitForEnd(task: { readonly id: string } | string, options: WaitOptions = {}): Promise<Task> {
    this.#open()
    return this.#waiting.forEnd(typeof task === 'string' ? checkId(task) : task.id, options)
  }

  /** This process's moves from now on. Leave the loop, or abort the signal, to end it. */
  events(options: { readonly signal?: AbortSignal } = {}): AsyncGenerator<MoveEvent, void, undefined> {
    return this.#open().events.stream(options.signal)
  }

  /** As `events`, by callback. Returns the way to stop it. */
  onMove(listener: (event: MoveEvent) => void): () => void {
    return this.#open().events.on(listener)
  }

  /** Every process's moves from now on, or since an instant: looked for four times a second. What was removed has left no trace. */
  changes(options: FollowOptions = {}): AsyncGenerator<TaskChange, void, undefined> {
    const session = this.#open()
    return follow(session, session.events.closing, options)
  }

  // ── moving ───────────────────────────────────────────────────────────────────────────────────────────────────

  /** A pending task is cancelled; a running one is asked to stop. A cancelled one: success. */
  cancel(id: string, options: { readonly reason?: string } = {}): Promise<Task> {
    return this.#do((session) => cancelById(session, id, options.reason))
  }

  /** These ids, or all pending and running tasks that match. Each has its own result. */
  cancelMany(which: readonly string[] | TaskQuery, options: CancelManyOptions = {}): Promise<EachResult[]> {
    return this.#do((session) => cancelMany(session, which, options))
  }

  /** A failed task with retries left, a cancelled one, or a running one, which loses its lease. */
  retry(id: string): Promise<Task> {
    return this.#do((session) => moveById(session, id, ['retry'], machine.retry))
  }

  /** A pending task expires now. */
  markExpired(id: string): Promise<Task> {
    return this.#do((session) => moveById(session, id, ['expire'], machine.expire))
  }

  archive(id: string): Promise<Task> {
    return this.#do((session) => moveById(session, id, ['archive'], (task, actor) => machine.archive(task, actor)))
  }

  unarchive(id: string): Promise<Task> {
    return this.#do((session) => moveById(session, id, ['unarchive'], machine.unarchive))
  }

  /** A task that has ended, and its idempotency key, are gone. */
  delete(id: string): Promise<void> {
    return this.#do((session) => deleteById(session, id))
  }

  /** Removes tasks that ended long enough ago, in small batches. How many it was. */
  prune(options: PruneOptions): Promise<number> {
    return this.#do((session) => pruneEnded(session, options))
  }

  /** Tasks that failed for good: what they died of, and ways to bring them back. */
  get deadLetters(): DeadLetters {
    this.#open()
    return this.#deadLetters
  }

  /** Recurring work. Every worker that has started makes its tasks. */
  get schedules(): Schedules {
    this.#open()
    return this.#schedules
  }

  // ── from store to store ──────────────────────────────────────────────────────────────────────────────────────

  /**
   * Everything of this store goes to that of `other`: killed at any point and called again, no task runs on both sides and
   * none is lost. WORKERS_LIVE while workers are live here, unless `live`. The other store is paused until it is done.
   */
  async moveTo(other: Client, options: MoveOptions = {}): Promise<MoveReport> {
    return moveBetween(this.#open(), other.#open(), options)
  }

  /** Everything, or the tasks that match, as lines of JSON: the first says what it is, the last how much it was. */
  export(query: TaskQuery = {}): AsyncGenerator<string, void, undefined> {
    return exportLines(this.#open(), query)
  }

  /**
   * What `export` wrote. `open` gives its lines from the beginning, twice: INVALID_EXPORT before anything is written. What
   * is here already stays as it is, so the same file may be imported again.
   */
  async import(open: OpenLines, options: ImportOptions = {}): Promise<ImportReport> {
    return importLines(this.#open(), open, options)
  }

  // ── driving tasks by hand ────────────────────────────────────────────────────────────────────────────────────

  /** This very task, for a caller who drives it himself. The same worker again gets the same lease. */
  async claim(id: string, options: ClaimOptions): Promise<TaskLease> {
    const session = this.#open()
    return claimById(session, this.#queues, id, this.#claimFacts(options))
  }

  /** The first due task of a queue, or null. */
  async claimNext(options: ClaimNextOptions): Promise<TaskLease | null> {
    const [lease = null] = await this.claimMany({ ...options, limit: 1 })
    return lease
  }

  /** The first due tasks of a queue, in one look: up to `limit`, each under a lease of its own. */
  async claimMany({ limit, ...options }: ClaimNextOptions & { readonly limit: number }): Promise<TaskLease[]> {
    const session = this.#open()
    const queue = checkName(options.queue ?? 'default', 'queue')
    const types = options.types?.map((type) => checkName(type, 'types')) ?? null
    const most = checkInteger(limit, 'limit', 1, 1_000)
    return claimDue(session, this.#queues, { ...this.#claimFacts(options), queue, types, limit: most })
  }

  /** A lease by its token, or (weaker) by the id of the worker that has it. */
  lease(id: string, holder: Holder): Promise<TaskLease> {
    return this.#do((session) => leaseOf(session, id, holder, session.store.leaseTtl))
  }

  #claimFacts({ workerId, leaseTtl }: ClaimOptions): { workerId: string; leaseTtl: number } {
    return {
      workerId: checkWorkerId(workerId),
      leaseTtl: leaseTtl === undefined ? this.#session.store.leaseTtl : parseDuration(leaseTtl, 'leaseTtl'),
    }
  }

  // ── queues and workers ───────────────────────────────────────────────────────────────────────────────────────

  /** A pause is seen by every worker within 5 s: running tasks go on, fetched-ahead ones are released. */
  queue(name: string): {
    pause(options?: { readonly reason?: string }): Promise<void>
    resume(options?: { readonly force?: boolean }): Promise<void>
    isPaused(): Promise<boolean>
    /** Takes a queue that is used no more off the list of queues. Its tasks, if it has any, stay. */
    forget(): Promise<void>
  } {
    const queue = checkName(name, 'queue')
    return {
      pause: (options = {}) => this.#do(() => this.#queues.pause(queue, options.reason)),
      resume: (options = {}) => this.#do(() => this.#queues.resume(queue, options.force)),
      isPaused: () => this.#do(async () => (await this.#queues.refresh()).has(queue)),
      forget: () => this.#do(() => this.#queues.forget(queue)),
    }
  }

  worker(options: WorkerOptions = {}): Worker {
    const worker = new Worker(this.#open(), this, this.#queues, this.#retention, this.#scheduler, options)
    this.#workers.add(worker)
    return worker
  }

  /** Stops this client's workers, then lets go of the store. Later calls reject with STORE_CLOSED. */
  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    await Promise.all([...this.#workers].map((worker) => worker.stop()))
    this.#waiting.close()
    this.#session.events.close()
    await this.#session.store.close()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  #open(): Session {
    if (this.#closed) throw closedError()
    return this.#session
  }

  /** Errors of every kind, also those of checking the arguments, come as a rejection. */
  async #do<T>(work: (session: Session) => Promise<T>): Promise<T> {
    return work(this.#open())
  }
}

const closedError = (): HoldfastError => new HoldfastError('STORE_CLOSED', 'this client is closed: connect again')
