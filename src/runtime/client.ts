/** The object that an application works with. Each method delegates to the folder that implements it. */

import { HoldfastError } from '../core/errors.ts'
import type { Finding } from '../core/observe/diagnosis.ts'
import { Task } from '../core/observe/task-view.ts'
import { checkId, checkName, checkWorkerId, type SubmitOptions } from '../core/submission.ts'
import type { HistoryEntry, Instant } from '../core/task.ts'
import { abortable, type CallOptions } from './abortable.ts'
import { Retention, type RetentionHandle, type RetentionOptions, retentionHandle } from './cleanup/retention.ts'
import { DeadLetters } from './dead-letters/dead-letters.ts'
import {
  type AnyDefinition,
  type InputFor,
  mustBeOf,
  type OutputFor,
  type Storable,
  type TaskDefinition,
  type Transaction,
  type TypeOrDefinition,
} from './definition.ts'
import { Monitor } from './monitor.ts'
import { type FollowOptions, follow, type TaskChange } from './observe/changes.ts'
import { Charts } from './observe/charts.ts'
import type { ClockRepair } from './observe/repair.ts'
import { type Explanation, explain } from './observe/why.ts'
import { type QueueHandle, queueHandle } from './queues/queue-handle.ts'
import { Queues } from './queues/queues.ts'
import { Scheduler } from './schedules/scheduler.ts'
import { Schedules } from './schedules/schedules.ts'
import type { Session } from './session.ts'
import { type SubmitManyItem, submitEach } from './submit/many.ts'
import { type SubmitResult, Submitter } from './submit/submitter.ts'
import { type Signalled, TaskCalls } from './task-calls.ts'
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
} from './tasks/inspect.ts'
import { findByKey } from './tasks/operations.ts'
import { read } from './tasks/settle.ts'
import { outputOf, Waiting, type WaitOptions } from './tasks/waiting.ts'
import type { MoveEvent } from './telemetry/events.ts'
import { exportLines } from './transfer/export.ts'
import { type ImportOptions, type ImportReport, importLines, type OpenLines } from './transfer/import.ts'
import { type MoveOptions, type MoveReport, moveBetween } from './transfer/transfer.ts'
import type { WorkerOptions } from './worker/options.ts'
import { liveWorkers, type RemoteWorker, RemoteWorkers, type WorkerInfo } from './worker/registration.ts'
import { Worker } from './worker/worker.ts'

type SubmitCallOptions = SubmitOptions & CallOptions & { readonly tx?: Transaction }
type Getting = [definition: TaskDefinition | null, id: string, options?: CallOptions]

/** What an application holds of a store: it submits tasks, reads and changes them, and makes workers. */
export class Client extends TaskCalls {
  readonly #session: Session
  protected readonly queues: Queues
  readonly #submitter: Submitter
  readonly #waiting: Waiting
  readonly #retention: Retention
  readonly #scheduler: Scheduler
  readonly #schedules: Schedules
  readonly #deadLetters: DeadLetters
  readonly #workers = new Set<Worker>()
  readonly #monitors = new Set<Monitor>()
  readonly #remoteWorkers: RemoteWorkers
  /** The client of which this is one by another name. */
  readonly #origin: Client | null
  #closed = false

  constructor(session: Session, retention?: RetentionOptions, origin: Client | null = null) {
    super()
    this.#session = session
    this.#origin = origin
    this.queues = origin === null ? new Queues(session) : origin.queues
    this.#remoteWorkers = origin === null ? new RemoteWorkers(session) : origin.#remoteWorkers
    this.#submitter = origin === null ? new Submitter(session, this.queues) : origin.#submitter.beside(session)
    this.#waiting = origin === null ? new Waiting(session) : origin.#waiting
    this.#scheduler = origin === null ? new Scheduler(session, this.#submitter) : origin.#scheduler
    this.#schedules = new Schedules(session, this.#submitter, this.#scheduler)
    this.#deadLetters = new DeadLetters(session, this.#waiting)
    this.#retention = origin === null ? new Retention(session, retention ?? {}) : origin.#retention
  }

  /**
   * This client under another name: what a server does for a caller is in the histories as the caller's. Both share everything else; closing
   * it stops its own workers only.
   */
  as(name: string): Client {
    return new Client({ ...this.#open(), name }, undefined, this)
  }

  /** The address of the store, without secrets. */
  get address(): string {
    return this.#session.store.address
  }

  /** The store's time. */
  now(options?: CallOptions): Promise<Instant> {
    return this.run(async ({ store }) => (await store.now()).at, options)
  }

  // ── submitting ───────────────────────────────────────────────────────────────────────────────────────────────

  /** When this resolves, the task is stored as durably as the store can. With `tx`, when the caller's transaction commits. */
  submit<Input, Output>(
    definition: AnyDefinition<Input, Output>,
    input: Input & Storable<Input>,
    options?: SubmitCallOptions,
  ): Promise<Task<Input, Output>>
  submit<Input>(type: string, input: Input & Storable<Input>, options?: SubmitCallOptions): Promise<Task>
  submit(type: string | TaskDefinition, input: unknown, options: SubmitCallOptions = {}) {
    if (this.#isClosed()) return Promise.reject(closedError())
    const { tx, signal, ...given } = options
    const submission = { type, input, options: given, tx }
    if (signal === undefined) return this.#submitter.submit(submission)
    return this.run((session) => this.#submitterOf(session).submit(submission), options)
  }

  /** Each item has its own result, in order; a bad one does not stop the others. `shared` options apply to every item that does not set them. */
  async submitMany<const Types extends readonly TypeOrDefinition[]>(
    items: { readonly [K in keyof Types]: SubmitManyItem<Types[K]> },
    { signal, ...shared }: SubmitOptions & CallOptions = {},
  ): Promise<{ -readonly [K in keyof Types]: SubmitResult<InputFor<Types[K]>, OutputFor<Types[K]>> }> {
    return this.run((session) => submitEach(session, this.#submitterOf(session), items, shared), { signal }) as never
  }

  // ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────

  /** TASK_NOT_FOUND when no task has this id. */
  get(id: string, options?: CallOptions): Promise<Task>
  get<Input, Output>(
    definition: AnyDefinition<Input, Output>,
    id: string,
    options?: CallOptions,
  ): Promise<Task<Input, Output>>
  get(...given: unknown[]): Promise<Task> {
    const [definition, id, options] = (typeof given[0] === 'object' ? given : [null, ...given]) as Getting
    return this.run(async (session) => mustBeOf(definition, new Task(await read(session, checkId(id)))), options)
  }

  /** TASK_NOT_FOUND when the key was never used, or has expired. */
  getByIdempotencyKey(key: string, options?: CallOptions): Promise<Task> {
    return this.run((session) => findByKey(session, key), options)
  }

  /** Every move of the task: the first, and the last 99. */
  async history(id: string, options?: CallOptions): Promise<readonly HistoryEntry[]> {
    return (await this.get(id, options)).history
  }

  /** One page of matching tasks, newest first, without histories and steps. */
  list({ signal, ...options }: ListOptions & CallOptions = {}): Promise<TaskPage> {
    return this.run((session) => listTasks(session, options), { signal })
  }

  /** Counts up to `cap`, which defaults to 100,000. */
  count(query: TaskQuery = {}, { signal, ...options }: CountOptions & CallOptions = {}): Promise<Count> {
    return this.run((session) => countTasks(session, query, options), { signal })
  }

  /** Explains in one sentence why a task is not running, with the facts behind it. */
  why(id: string, options?: CallOptions): Promise<Explanation> {
    return this.run((session) => explain(session, this.queues, id), options)
  }

  /** The live workers: those that sent a heartbeat in the last 30 s. */
  workers(options?: CallOptions): Promise<WorkerInfo[]> {
    return this.run(liveWorkers, options)
  }

  /**
   * For servers that claim on behalf of remote workers: lists such a worker in `workers` and `why` until it stops calling. Without
   * `queues`, it has renewed a lease and serves what it served before.
   */
  heardOfWorker(id: string, worker: Partial<RemoteWorker> = {}): Promise<void> {
    return this.run(() => this.#remoteWorkers.heardOf(checkWorkerId(id), worker))
  }

  /** Checks the health of the store and its workers. Returns what was found, and how to fix it. Changes nothing. `quick` leaves out what may read the whole store. */
  examine({ quick, ...options }: CallOptions & { readonly quick?: boolean } = {}): Promise<Finding[]> {
    // Loaded on demand: it is rarely used and large, and short-lived processes start faster without it.
    const load = import('./observe/examine.ts')
    return this.run(
      async (session) => (await load).examine(session, this.queues, this.#scheduler.runner, quick),
      options,
    )
  }

  /** Call after restoring a backup, with all other processes stopped. Adds a million to every fence, so that no fence is handed out twice. Then close this client. */
  acceptRestore(): Promise<number> {
    return this.run(async (session) => (await import('./observe/repair.ts')).acceptRestore(session))
  }

  /** For stores that use this machine's clock: resets dates that a process with a fast clock wrote into the future. */
  repairClock(): Promise<ClockRepair> {
    return this.run(async (session) => (await import('./observe/repair.ts')).repairClock(session))
  }

  /**
   * Charts of the last minutes, hours and days. Keep one for the life of the process: `start()` makes it record. A process that only reads
   * sees what others have recorded, and the last six minutes.
   */
  charts(): Charts {
    return new Charts(this.#open(), this.queues)
  }

  /** Counts the tasks of every queue. A count stops at `cap` unless the store knows the exact number for free; `capped` names the counts that are lower bounds. */
  stats(options: CallOptions & { readonly cap?: number } = {}): Promise<QueueStats[]> {
    return this.run((session) => queueStats(session, this.queues, options.cap), options)
  }

  /** The output of a task that completes; rejects with TASK_FAILED, TASK_CANCELLED or TASK_EXPIRED when it ends otherwise. */
  wait<Output = unknown>(
    task: Task<never, Output> | Task<unknown, Output> | string,
    options?: WaitOptions,
  ): Promise<Output>
  wait<Input, Output>(definition: AnyDefinition<Input, Output>, id: string, options?: WaitOptions): Promise<Output>
  async wait(what: { readonly id: string } | string | TaskDefinition, ...more: unknown[]): Promise<unknown> {
    const definition = typeof what === 'object' && !('id' in what) ? what : null
    const [task, options] = (definition === null ? [what, more[0]] : more) as [Task | string, WaitOptions?]
    return outputOf(mustBeOf(definition, await this.waitForEnd(task, options)))
  }

  /** Resolves with the task when it has ended, in whatever status. */
  async waitForEnd(task: { readonly id: string } | string, options: WaitOptions = {}): Promise<Task> {
    this.#open()
    return this.#waiting.forEnd(typeof task === 'string' ? checkId(task) : task.id, options)
  }

  /** The moves that this process makes from now on. Leave the loop or abort the signal to end it. */
  events(options: { readonly signal?: AbortSignal } = {}): AsyncGenerator<MoveEvent, void, undefined> {
    return this.#open().events.stream(options.signal)
  }

  /** Like `events`, with a callback. Returns a function that unsubscribes. */
  onMove(listener: (event: MoveEvent) => void): () => void {
    return this.#open().events.on(listener)
  }

  /** The moves of all processes, from now on or since an instant. Polls the store four times a second. Moves of removed tasks are not reported. */
  changes(options: FollowOptions = {}): AsyncGenerator<TaskChange, void, undefined> {
    const session = this.#open()
    return follow(session, session.events.closing, options)
  }

  // ── dead letters and schedules ───────────────────────────────────────────────────────────────────────────────

  /** Tasks that failed permanently: lists them by error, replays and purges them. */
  get deadLetters(): DeadLetters {
    this.#open()
    return this.#deadLetters
  }

  /** Recurring work. Every running worker submits the tasks of schedules that are due. */
  get schedules(): Schedules {
    this.#open()
    return this.#schedules
  }

  // ── from store to store ──────────────────────────────────────────────────────────────────────────────────────

  /**
   * Moves everything in this store to the store of `other`. It can be killed at any point and called again: no task runs on
   * both sides and none is lost. The other store is paused until it is done. WORKERS_LIVE while workers are live here,
   * unless `live` is set.
   */
  async moveTo(other: Client, options: MoveOptions = {}): Promise<MoveReport> {
    return moveBetween(this.#open(), other.#open(), options)
  }

  /** Everything, or the tasks that match, as lines of JSON. The first line is a header, the last one has the counts. */
  export(query: TaskQuery = {}): AsyncGenerator<string, void, undefined> {
    return exportLines(this.#open(), query)
  }

  /**
   * Imports what `export` wrote. `open` is called twice and returns the lines from the beginning: the first pass checks the
   * file and throws INVALID_EXPORT before anything is written. Existing tasks are left alone, so importing a file again is safe.
   */
  async import(open: OpenLines, options: ImportOptions = {}): Promise<ImportReport> {
    return importLines(this.#open(), open, options)
  }

  // ── queues and workers ───────────────────────────────────────────────────────────────────────────────────────

  /** Pauses and resumes one queue. */
  queue(name: string): QueueHandle {
    return queueHandle(this.queues, checkName(name, 'queue'), (work, options) => this.run(work, options))
  }

  /** A worker on this store. Give it handlers, then `start`, `run` or `drain`. */
  worker(options: WorkerOptions = {}): Worker {
    const worker = new Worker(this.#open(), this, this.queues, this.#retention, this.#scheduler, options)
    this.#workers.add(worker)
    return worker
  }

  /**
   * Fires schedules, takes back the leases of dead workers, ends expired tasks and applies retention, in all queues. Every
   * worker does the same; a store whose workers all claim over HTTP needs one monitor. Call `start()`.
   */
  monitor(): Monitor {
    const monitor = new Monitor(this.#open(), this.queues, this.#retention, this.#scheduler)
    this.#monitors.add(monitor)
    return monitor
  }

  /** How long every process that uses this store keeps ended tasks. If a process has its own `retention`, the shorter one wins. */
  get retention(): RetentionHandle {
    return retentionHandle((work) => this.run(work))
  }

  /** Stops this client's workers, then closes the store. Later calls reject with STORE_CLOSED. */
  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    await Promise.all([...this.#workers, ...this.#monitors].map((one) => one.stop()))
    if (this.#origin !== null) return
    this.#waiting.close()
    this.#session.events.close()
    this.#session.contact.close()
    await this.#session.store.close()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  #open(): Session {
    if (this.#isClosed()) throw closedError()
    return this.#session
  }

  #isClosed(): boolean {
    return this.#closed || (this.#origin === null ? false : this.#origin.#isClosed())
  }

  /** All errors are rejections, including those about invalid arguments. */
  protected async run<T>(work: (session: Session) => Promise<T>, options: Signalled = {}): Promise<T> {
    return abortable(this.#open(), options.signal, work)
  }

  /** Submits without a signal share one submitter, and so their writes. */
  #submitterOf(session: Session): Submitter {
    return session === this.#session ? this.#submitter : this.#submitter.beside(session)
  }
}

const closedError = (): HoldfastError => new HoldfastError('STORE_CLOSED', 'this client is closed: connect again')
