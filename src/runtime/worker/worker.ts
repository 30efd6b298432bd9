/** A worker runs handlers: the fetcher claims tasks, the heartbeat renews their leases, the finisher writes how they ended. */

import { HoldfastError } from '../../core/errors.ts'
import type { TaskRecord } from '../../core/task.ts'
import { type Duration, parseDuration } from '../../core/values/durations.ts'
import { checkOptionNames } from '../../core/values/option-names.ts'
import type { Retention } from '../cleanup/retention.ts'
import { Sweeper } from '../cleanup/sweeper.ts'
import type { Client } from '../client.ts'
import { type Cancel, pause } from '../clock.ts'
import type { TaskDefinition } from '../definition.ts'
import type { BatchHandler, BatchOptions, Handler } from '../handler.ts'
import { pauseQueueOf } from '../queues/pause-queue.ts'
import type { Queues } from '../queues/queues.ts'
import type { Session } from '../session.ts'
import type { Attempt } from './attempt.ts'
import { type Drained, type DrainOptions, drainSettings } from './draining.ts'
import { MOST_AHEAD } from './fetch/claim-size.ts'
import { type Delivery, Fetcher } from './fetch/fetcher.ts'
import { Lanes } from './fetch/lanes.ts'
import { Finisher } from './finisher.ts'
import { Handlers } from './handlers.ts'
import { Heartbeat } from './heartbeat.ts'
import { Hooks } from './hooks.ts'
import { IdleWaiters } from './idle.ts'
import type { IsolatedHandler } from './isolate/options.ts'
import { IsolatedChildren } from './isolate/pool.ts'
import type { Middleware } from './middleware.ts'
import { type SchedulerOfWorker, type WorkerOptions, type WorkerSettings, workerSettings } from './options.ts'
import { Registration } from './registration.ts'
import { Runs } from './runs.ts'
import { onSignals } from './signals.ts'

/** With this many unwritten endings, no further task is started. */
const MOST_UNWRITTEN = 4_000
/** How soon a drain looks again for leases that may not be taken yet. */
const LEFT_ALONE = 200
/** After the abort at shutdown, how long a handler may take to settle. */
const ABORT_GRACE = 1_000

/** Claims tasks of the types that it handles and runs them, each under a lease. */
export class Worker {
  readonly #session: Session
  readonly #settings: WorkerSettings
  readonly #children: IsolatedChildren
  readonly #handlers: Handlers
  readonly #queues: Queues
  readonly #hooks: Hooks
  readonly #fetcher: Fetcher
  readonly #heartbeat: Heartbeat
  readonly #finisher: Finisher
  readonly #retention: Retention
  /** null if this worker does not fire schedules. */
  #scheduler: SchedulerOfWorker | null
  readonly #registration: Registration
  readonly #sweeper: Sweeper
  readonly #runs: Runs
  /** Claimed tasks that wait for a slot. */
  readonly #waiting: Lanes
  #pumping = false
  #state: 'new' | 'started' | 'stopping' | 'stopped' = 'new'
  #stopping: Promise<void> | null = null
  #error: HoldfastError | null = null
  #isDraining = false
  /** Asked again while it stops: running handlers get no more time. */
  #isHurried = false
  /** How many tasks were claimed. */
  #delivered = 0
  readonly #idle: IdleWaiters
  #stoppedListeners: (() => void)[] = []
  #unsubscribe: Cancel = () => {}

  constructor(
    session: Session,
    client: Client,
    queues: Queues,
    retention: Retention,
    scheduler: SchedulerOfWorker,
    options: WorkerOptions,
  ) {
    const settings = workerSettings(session, options)
    const { leaseTtl, pollInterval, concurrency } = settings
    this.#session = session
    this.#settings = settings
    this.#queues = queues
    this.#hooks = new Hooks(settings, session.logger)
    this.#idle = new IdleWaiters(session.clock)
    this.#children = new IsolatedChildren(session, concurrency)
    this.#handlers = new Handlers(session.tracing, this.#children, settings.queues)
    this.#retention = retention
    this.#scheduler = settings.scheduler ? scheduler : null
    this.#registration = new Registration(session, settings, () => ({ types: this.types, ...this.#runs.stuck.state }))
    this.#sweeper = new Sweeper(session, queues, settings.id)
    this.#waiting = new Lanes(session.clock, {
      singleTypes: () => this.#handlers.singleTypes,
      free: () => this.#free,
      room: () => (this.#isTaking && this.#finisher.pending <= MOST_UNWRITTEN ? this.#heartbeat.room : 0),
      release: (attempts) => this.#release(attempts),
      ripe: () => this.#pumpSoon(),
      isDraining: () => this.#isDraining,
    })
    this.#heartbeat = new Heartbeat(session, settings.id, leaseTtl, concurrency + MOST_AHEAD + MOST_UNWRITTEN)
    this.#finisher = new Finisher(session, {
      heartbeat: this.#heartbeat,
      discards: (change) => retention.discards(change),
      pauseQueue: (task, wish) => pauseQueueOf(session, task, wish, queues),
      ended: (attempt, result, change) => {
        this.#hooks.taskEnded(attempt, result, change)
        this.#fetcher.freed(attempt.record)
        this.#pumpSoon()
      },
    })
    this.#runs = new Runs(session, settings, {
      client,
      handlers: this.#handlers,
      heartbeat: this.#heartbeat,
      finisher: this.#finisher,
      hooks: this.#hooks,
      over: (attempt) => {
        this.#hooks.taskEnded(attempt, attempt.record)
        this.#fetcher.freed(attempt.record)
      },
      freed: () => this.#pumpSoon(),
      stuckChanged: () => this.#registration.changed(),
      allStuck: (error) => this.#allStuck(error),
    })
    this.#fetcher = new Fetcher(session, queues, {
      workerId: this.id,
      queues: settings.queues,
      leaseTtl,
      pollInterval,
      unstarted: (queue) => this.#waiting.groupsOf(queue),
      held: (queue) => this.#waiting.countOf(queue),
      claiming: (op) => this.#heartbeat.claiming(op),
      deliver: (tasks, claim) => this.#deliver(tasks, claim),
      foundNothing: () => this.#checkIdle(),
      broken: (error) => this.#broken(error),
    })
  }

  /** As histories show it. */
  get id(): string {
    return this.#settings.id
  }

  /** The types that have a handler. */
  get types(): readonly string[] {
    return this.#handlers.types
  }

  /** Registers the handler of a type. Each type has one handler. */
  handle<Input, Parsed, Output>(
    definition: TaskDefinition<Input, Parsed, Output>,
    handler: Handler<Parsed, Output, Input> | IsolatedHandler,
  ): this
  handle(type: string, handler: Handler | IsolatedHandler): this
  handle(type: string | TaskDefinition, handler: Handler | IsolatedHandler): this {
    this.#handlers.add(type, handler)
    if (this.#handlers.singleTypes.length === 1) this.#fetcher.addLane(this.#waiting.single)
    return this
  }

  /**
   * Registers a handler that gets up to `size` tasks of a type in one call. The call takes one slot. It returns one result for each task: a value,
   * or an Error, which fails that task alone.
   */
  handleMany<Input, Parsed, Output>(
    definition: TaskDefinition<Input, Parsed, Output>,
    options: BatchOptions,
    handler: BatchHandler<Parsed, Output, Input>,
  ): this
  handleMany(type: string, options: BatchOptions, handler: BatchHandler): this
  handleMany(type: string | TaskDefinition, options: BatchOptions, handler: BatchHandler): this {
    const batch = this.#handlers.addBatch(type, options, handler)
    // The leases of its tasks must not lapse, nor be given back, while they wait.
    const wait = Math.min(batch.wait, this.#settings.leaseTtl / 2)
    this.#fetcher.addLane(this.#waiting.addBatch(batch.type, batch.size, wait))
    return this
  }

  /** Adds a middleware around every run of a task, also in a batch. The first one is the outermost. */
  use(middleware: Middleware): this {
    this.#handlers.use(middleware)
    return this
  }

  // ── start and stop ───────────────────────────────────────────────────────────────────────────────────────────

  /** Begins to claim, and returns at once. To run until SIGTERM, see `run`. */
  start(): this {
    if (this.#state !== 'new')
      throw new HoldfastError('INVALID_OPTION', `this worker is ${this.#state}; make a new one`)
    if (this.types.length === 0)
      throw new HoldfastError('NO_HANDLER', 'this worker has no handlers: call handle(type, handler) first')
    this.#state = 'started'
    this.#unsubscribe = this.#queues.onChange(() => this.#releasePaused())
    this.#retention.start()
    this.#registration.start()
    this.#sweeper.start(this.#settings.queues)
    this.#scheduler?.start()
    this.#hooks.started()
    this.#fetcher.start()
    return this
  }

  /** Starts, and resolves when the worker has stopped after SIGTERM, SIGINT or `stop`. Rejects if the store is lost, or with WORKER_STUCK. */
  async run(options: { readonly signals?: boolean } = {}): Promise<void> {
    checkOptionNames(options, ['signals'], 'run')
    const asked = (): void => void this.stop(this.#stopping === null ? {} : { timeout: 0 })
    await (options.signals === false ? this.#untilStopped() : onSignals(asked, () => this.#untilStopped()))
  }

  async #untilStopped(): Promise<void> {
    this.start()
    await new Promise<void>((done) => this.#stoppedListeners.push(done))
    await this.#stopping
    if (this.#error !== null) throw this.#error
  }

  /**
   * Runs the tasks that are ready, and those that become ready meanwhile, then stops. What only a rate, a pause or the places of other workers
   * hold back is left, as a task that is due later is. For hosts that start a process or a function now and then (cron, Lambda),
   * `schedules: true` also does what a worker does besides.
   */
  async drain(options: DrainOptions = {}): Promise<Drained> {
    const { limit, schedules } = drainSettings(options)
    if (!schedules) this.#scheduler = null
    this.#isDraining = true
    let timeIsOver = false
    const ended = Promise.withResolvers<void>()
    this.#stoppedListeners.push(ended.resolve)
    const idle = this.#idle.next()
    this.start()
    const atLimit = (): void => {
      timeIsOver = true
      ended.resolve()
    }
    const cancel = limit === null ? () => {} : this.#session.clock.after(limit, atLimit)
    await Promise.race([schedules ? this.#untilNothingIsDue() : idle, ended.promise])
    cancel()
    await this.stop()
    if (this.#error !== null) throw this.#error
    return { timeIsOver }
  }

  /**
   * A task that ends may let the next slot of its schedule fire, so this looks again until a look finds nothing. A young process may not take
   * lapsed leases yet: it waits until it may, otherwise a host that only ever starts young ones would never take them.
   */
  async #untilNothingIsDue(): Promise<void> {
    await Promise.all([this.#sweeper.firstSweep, this.#retention.firstSweep])
    for (let before = -1; this.#state === 'started'; ) {
      if (this.#fetcher.hasLeftAlone) await pause(this.#session.clock, LEFT_ALONE)
      else if (before === this.#delivered) return
      before = this.#delivered
      await this.#scheduler?.fireDue()
      if (this.#state !== 'started') return
      const idle = this.#idle.next()
      this.#fetcher.lookAgain()
      await idle
    }
  }

  /** Claims nothing more and releases prefetched tasks. Running handlers get `timeout`, then their signal aborts with `shutdown`. */
  stop(options: { readonly timeout?: Duration } = {}): Promise<void> {
    checkOptionNames(options, ['timeout'], 'stop')
    if (this.#state === 'new') this.#state = 'stopped'
    const timeout =
      options.timeout === undefined ? this.#settings.stopTimeout : parseDuration(options.timeout, 'timeout')
    if (this.#stopping !== null) {
      if (timeout === 0) {
        this.#isHurried = true
        this.#runs.abortAll()
        this.#idle.tell()
      }
      return this.#stopping
    }
    this.#stopping = this.#shutDown(timeout)
    return this.#stopping
  }

  async #shutDown(timeout: number): Promise<void> {
    if (this.#state === 'started') {
      this.#state = 'stopping'
      const scheduled = this.#scheduler?.stop()
      await this.#fetcher.stop()
      this.#waiting.releaseAll()
      await this.#idle.until(timeout, () => this.#runs.size > 0 && !this.#isHurried)
      this.#runs.abortAll()
      await this.#idle.until(ABORT_GRACE, () => this.#runs.size > 0)
      await this.#children.close()
      // Handlers that have not settled by now lose their leases by lapse. Endings in flight are awaited.
      this.#runs.abandon()
      // Not forever: after one lease length without contact the leases have lapsed anyway.
      await this.#idle.until(this.#settings.leaseTtl, () => this.#finisher.pending > 0 && !this.#isBroken)
      this.#unsubscribe()
      this.#runs.close()
      this.#waiting.close()
      this.#retention.stop()
      this.#sweeper.stop()
      await this.#registration.stop()
      await scheduled
      this.#hooks.stopped()
    }
    this.#heartbeat.close()
    this.#state = 'stopped'
    for (const done of this.#stoppedListeners) done()
    this.#idle.tell()
  }

  get #isBroken(): boolean {
    return this.#error !== null && this.#error.code !== 'WORKER_STUCK'
  }

  #broken(error: HoldfastError): void {
    this.#error = error
    this.#session.logger.error(`the worker stops: ${error.message}`)
    // Not synchronously: this is called from the fetcher's loop, which stop() waits for.
    queueMicrotask(() => void this.stop({ timeout: 0 }))
    this.#idle.tell()
  }

  // ── tasks in ─────────────────────────────────────────────────────────────────────────────────────────────────

  get #isTaking(): boolean {
    return this.#state === 'started' && !this.#runs.stuck.isFull
  }

  get #free(): number {
    return this.#settings.concurrency - this.#runs.slots
  }

  #deliver(tasks: readonly TaskRecord[], { askedAt, isKept }: Delivery): void {
    if (tasks.length === 0) return
    this.#delivered += tasks.length
    const attempts = tasks.map((task) => this.#runs.attemptOf(task, askedAt))
    if (!this.#isTaking || !isKept) {
      this.#release(attempts)
      return
    }
    this.#heartbeat.hold(attempts, askedAt)
    this.#waiting.add(attempts)
    this.#pump()
    this.#waiting.releaseSurplusLater()
  }

  #releasePaused(): void {
    this.#waiting.releaseAll(({ record }) => this.#queues.isPaused(record.queue, record.group))
    this.#fetcher.nudge()
  }

  #release(attempts: readonly Attempt[]): void {
    for (const attempt of attempts) this.#finisher.release(attempt)
  }

  // ── tasks running ────────────────────────────────────────────────────────────────────────────────────────────

  #pumpSoon(): void {
    if (this.#pumping) return
    this.#pumping = true
    queueMicrotask(() => this.#pump())
  }

  /** Starts as many tasks as there are free slots, then asks for more. */
  #pump(): void {
    this.#pumping = false
    const free = this.#free
    if (this.#isTaking && free > 0 && this.#waiting.length > 0 && this.#finisher.pending <= MOST_UNWRITTEN)
      this.#runs.start(this.#waiting.take(free))
    this.#fetcher.nudge()
    this.#checkIdle()
  }

  /** No slot is left. A worker that drains or has `exitWhenStuck` stops; any other waits until a handler settles. */
  #allStuck(error: HoldfastError): void {
    if (this.#state !== 'started') return
    this.#waiting.releaseAll()
    if (!this.#settings.exitWhenStuck && !this.#isDraining) return
    this.#error ??= error
    void this.stop()
  }

  // ── idle ─────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Resolves waiting callers when nothing runs, waits or is unwritten, and no queue has a task due. */
  #checkIdle(): void {
    if (!this.#idle.isAwaited || this.#runs.size > 0 || this.#waiting.length > 0 || this.#finisher.pending > 0) return
    if (this.#state === 'started' && !this.#fetcher.isResting) return
    this.#idle.tell()
  }
}
