/** A worker: so many handlers at once, fed by the intake, kept alive by the heartbeat, written down by the finisher. */
import { type Duration, parseDuration } from '../core/durations.ts'
import { HoldfastError } from '../core/errors.ts'
import { Task } from '../core/snapshot.ts'
import { checkName } from '../core/submission.ts'
import { applyChange, type TaskRecord } from '../core/task.ts'
import { Attempt, type AttemptHost, type Handler, type Outcome } from './attempt.ts'
import type { Client } from './client.ts'
import type { Cancel } from './clock.ts'
import { Deadlines } from './deadlines.ts'
import { asDefinition, type TaskDefinition } from './definition.ts'
import { endingOf, releasing, timingOut } from './ending.ts'
import { type Ending, Finisher, type Result } from './finish.ts'
import { Heartbeat } from './heartbeat.ts'
import { Intake } from './intake.ts'
import type { Queues } from './queues.ts'
import { RecentRate } from './recent-rate.ts'
import { Registration } from './registry.ts'
import type { Retention } from './retention.ts'
import type { Scheduler } from './scheduler.ts'
import type { Session } from './session.ts'
import { tellIfStale } from './stale-writes.ts'
import { type WorkerOptions, type WorkerSettings, workerSettings } from './worker-options.ts'

interface Registered {
  readonly definition: TaskDefinition
  readonly handler: Handler
}

/** Tasks in one claim. */
const LARGEST_CLAIM = 1_000
/** Fetch ahead what would be started in this many milliseconds: modest, so that other workers find work too. */
const AHEAD = 250
const MOST_AHEAD = 2_000
const A_SECOND = 1_000
/** Endings not yet written before no more are started. */
const MOST_UNWRITTEN = 4_000
/** After the abort at shutdown, how long a handler may take to settle. */
const ABORT_GRACE = 1_000

export class Worker {
  readonly #session: Session
  readonly #settings: WorkerSettings
  readonly #handlers = new Map<string, Registered>()
  readonly #queues: Queues
  readonly #intake: Intake
  readonly #heartbeat: Heartbeat
  readonly #finisher: Finisher
  readonly #deadlines: Deadlines
  readonly #retention: Retention | null
  /** null: it makes no tasks of schedules. */
  #scheduler: Scheduler | null
  readonly #registration: Registration
  readonly #host: AttemptHost
  readonly #running = new Set<Attempt>()
  readonly #starts: RecentRate
  #waiting: Attempt[] = []
  #pumping = false
  #state: 'new' | 'started' | 'stopping' | 'stopped' = 'new'
  #stopping: Promise<void> | null = null
  #error: HoldfastError | null = null
  #idle: (() => void)[] = []
  #stoppedListeners: (() => void)[] = []
  #cancelLetGo: Cancel | null = null
  #unsubscribe: Cancel = () => {}

  constructor(
    session: Session,
    client: Client,
    queues: Queues,
    retention: Retention | null,
    scheduler: Scheduler,
    options: WorkerOptions,
  ) {
    const settings = workerSettings(session, options)
    const { leaseTtl, pollInterval, concurrency } = settings
    this.#session = session
    this.#settings = settings
    this.#queues = queues
    this.#retention = retention
    this.#scheduler = settings.scheduler ? scheduler : null
    this.#registration = new Registration(session, settings, () => this.types)
    this.#starts = new RecentRate(() => session.clock.mono())
    this.#deadlines = new Deadlines(session.clock, this.#running, (attempt) => this.#timeOut(attempt))
    this.#heartbeat = new Heartbeat(session, leaseTtl, concurrency + MOST_AHEAD + MOST_UNWRITTEN)
    this.#finisher = new Finisher(session, {
      ended: (ending, result) => this.#ended(ending, result),
      discards: (change) => retention?.discards(change) ?? false,
    })
    this.#host = {
      client,
      workerId: this.id,
      logger: session.logger,
      maxPayload: session.maxPayload,
      progress: (attempt, text) => this.#heartbeat.progress(attempt, text),
    }
    this.#intake = new Intake(session, queues, {
      workerId: this.id,
      queues: settings.queues,
      leaseTtl,
      pollInterval,
      types: () => this.types,
      room: (asked) => this.#room(asked),
      deliver: (tasks, askedAt) => this.#deliver(tasks, askedAt),
      foundNothing: () => this.#checkIdle(),
      broken: (error) => this.#broken(error),
    })
  }

  get id(): string {
    return this.#settings.id
  }

  /** The types that it handles. */
  get types(): readonly string[] {
    return [...this.#handlers.keys()]
  }

  /** Registers the handler of a type. One each. */
  handle<Input, Parsed, Output>(
    definition: TaskDefinition<Input, Parsed, Output>,
    handler: Handler<Parsed, Output>,
  ): this
  handle(type: string, handler: Handler): this
  handle(type: string | TaskDefinition, handler: Handler): this {
    const definition = asDefinition(type)
    checkName(definition.type, 'type')
    if (typeof handler !== 'function')
      throw new HoldfastError('INVALID_OPTION', `the handler of '${definition.type}' is not a function`, {
        field: 'handler',
      })
    if (this.#handlers.has(definition.type))
      throw new HoldfastError('INVALID_OPTION', `'${definition.type}' has a handler already`, { field: 'type' })
    const traced = this.#session.tracing?.handler(definition.type, handler) ?? handler
    this.#handlers.set(definition.type, { definition, handler: traced })
    return this
  }

  // ── life ─────────────────────────────────────────────────────────────────────────────────────────────────────

  start(): this {
    if (this.#state !== 'new')
      throw new HoldfastError('INVALID_OPTION', `this worker is ${this.#state}; make a new one`)
    if (this.#handlers.size === 0)
      throw new HoldfastError('NO_HANDLER', 'this worker has no handlers: call handle(type, handler) first')
    this.#state = 'started'
    this.#unsubscribe = this.#queues.onChange(() => this.#releasePaused())
    this.#retention?.start()
    this.#registration.start()
    this.#scheduler?.start()
    this.#call(() => this.#settings.hooks.onStart?.())
    this.#intake.start()
    return this
  }

  /** Starts, and resolves when the worker has stopped: on SIGTERM or SIGINT, or by `stop`. Rejects when the store is lost. */
  async run(options: { readonly signals?: boolean } = {}): Promise<void> {
    const asked = (): void => void this.stop(this.#stopping === null ? {} : { timeout: 0 })
    if (options.signals ?? true) for (const signal of SIGNALS) process.on(signal, asked)
    try {
      this.start()
      await new Promise<void>((done) => this.#stoppedListeners.push(done))
      await this.#stopping
      if (this.#error !== null) throw this.#error
    } finally {
      for (const signal of SIGNALS) process.off(signal, asked)
    }
  }

  /** Runs what is ready now, and what that makes ready, then stops. Leaves schedules to others. */
  async drain(): Promise<void> {
    const idle = new Promise<void>((done) => this.#idle.push(done))
    this.#scheduler = null
    this.start()
    await idle
    await this.stop()
    if (this.#error !== null) throw this.#error
  }

  /** No new claims; what waits is released; running handlers get `timeout`, then their signal aborts with `shutdown`. */
  stop(options: { readonly timeout?: Duration } = {}): Promise<void> {
    if (this.#state === 'new') this.#state = 'stopped'
    const timeout =
      options.timeout === undefined ? this.#settings.stopTimeout : parseDuration(options.timeout, 'timeout')
    if (this.#stopping !== null) {
      if (timeout === 0) this.#abortAll()
      return this.#stopping
    }
    this.#stopping = this.#shutDown(timeout)
    return this.#stopping
  }

  async #shutDown(timeout: number): Promise<void> {
    if (this.#state === 'started') {
      this.#state = 'stopping'
      const scheduled = this.#scheduler?.stop()
      await this.#intake.stop()
      this.#release(this.#waiting.splice(0))
      await this.#untilSettled(timeout)
      this.#abortAll()
      await this.#untilSettled(ABORT_GRACE)
      // What has not settled by now is left to lapse; what is being written is waited for.
      this.#running.clear()
      // Not for ever: once a lease's length has passed without contact, there is nothing left to save.
      await this.#untilIdle(this.#settings.leaseTtl, () => this.#finisher.pending > 0 && this.#error === null)
      this.#unsubscribe()
      this.#deadlines.close()
      this.#cancelLetGo?.()
      this.#retention?.stop()
      await this.#registration.stop()
      await scheduled
      this.#call(() => this.#settings.hooks.onStop?.())
    }
    this.#heartbeat.close()
    this.#state = 'stopped'
    for (const done of [...this.#stoppedListeners, ...this.#idle.splice(0)]) done()
  }

  #untilSettled(timeout: number): Promise<void> {
    return this.#untilIdle(timeout, () => this.#running.size > 0)
  }

  /** While `isBusy`, at the most for `timeout`. */
  #untilIdle(timeout: number, isBusy: () => boolean): Promise<void> {
    if (!isBusy()) return Promise.resolve()
    return new Promise((done) => {
      const cancel = this.#session.clock.after(timeout, done)
      const look = (): void => {
        if (isBusy()) {
          this.#idle.push(look)
          return
        }
        cancel()
        done()
      }
      this.#idle.push(look)
    })
  }

  #abortAll(): void {
    for (const attempt of this.#running) attempt.abort('shutdown')
  }

  #broken(error: HoldfastError): void {
    this.#error = error
    this.#session.logger.error(`the worker stops: ${error.message}`)
    // From the intake's own loop, which stop() waits for: hence not at once.
    queueMicrotask(() => void this.stop({ timeout: 0 }))
    for (const done of this.#idle.splice(0)) done()
  }

  // ── tasks in ─────────────────────────────────────────────────────────────────────────────────────────────────

  /** One per free slot at the least; more only as fast as tasks have been started lately. */
  #room(asked: number): number {
    if (this.#state !== 'started' || this.#finisher.pending > MOST_UNWRITTEN) return 0
    const free = this.#settings.concurrency - this.#running.size
    const ahead = Math.min(this.#starts.within(AHEAD), MOST_AHEAD)
    const held = this.#waiting.length
    // Half-way, so that claims come in batches and not one by one; a second beside the first only when little is left,
    // because it passes what that one has locked.
    if (held + asked >= free && held + asked / 2 > ahead / 2) return 0
    return Math.min(Math.max(free, ahead) - held - asked, LARGEST_CLAIM, this.#heartbeat.room - asked)
  }

  #deliver(tasks: readonly TaskRecord[], askedAt: number): void {
    if (tasks.length === 0) return
    const attempts = tasks.map((task) => new Attempt(task, this.#host, askedAt))
    if (this.#state !== 'started') {
      this.#release(attempts)
      return
    }
    this.#heartbeat.hold(attempts)
    for (const attempt of attempts) this.#waiting.push(attempt)
    this.#pump()
    this.#letGoLater()
  }

  /** What was fetched ahead and then stands behind slow handlers goes back: an idle worker elsewhere may have it. */
  #letGoLater(): void {
    if (this.#cancelLetGo !== null || this.#waiting.length === 0) return
    this.#cancelLetGo = this.#session.clock.after(A_SECOND, () => {
      this.#cancelLetGo = null
      const surplus = this.#waiting.length - this.#starts.within(A_SECOND)
      if (surplus > 0) this.#release(this.#waiting.splice(-surplus))
      this.#letGoLater()
    })
  }

  #releasePaused(): void {
    const paused = this.#waiting.filter(({ record }) => this.#queues.isPaused(record.queue))
    this.#waiting = this.#waiting.filter(({ record }) => !this.#queues.isPaused(record.queue))
    this.#release(paused)
    this.#intake.nudge()
  }

  #release(attempts: readonly Attempt[]): void {
    for (const attempt of attempts) this.#finisher.push(releasing(attempt))
  }

  // ── tasks running ────────────────────────────────────────────────────────────────────────────────────────────

  #pumpSoon(): void {
    if (this.#pumping) return
    this.#pumping = true
    queueMicrotask(() => this.#pump())
  }

  /** Starts as many as there are slots, then asks for more. */
  #pump(): void {
    this.#pumping = false
    const free = this.#settings.concurrency - this.#running.size
    if (this.#state === 'started' && free > 0 && this.#waiting.length > 0 && this.#finisher.pending <= MOST_UNWRITTEN) {
      const turn = this.#waiting.splice(0, free)
      // Whose lease may be gone is not begun: given back if it is still ours, and the store says no if not.
      const lost = turn.filter((attempt) => attempt.abortedFor !== null || this.#heartbeat.isOverdue(attempt))
      if (lost.length > 0) {
        this.#release(lost)
        this.#waiting.unshift(...turn.filter((attempt) => !lost.includes(attempt)))
        this.#pumpSoon()
        return
      }
      const now = this.#session.clock.mono()
      for (const attempt of turn) this.#begin(attempt, now)
      this.#starts.add(turn.length)
      for (const attempt of turn) this.#run(attempt)
    }
    this.#intake.nudge()
    this.#checkIdle()
  }

  #begin(attempt: Attempt, now: number): void {
    const { timeout } = attempt.record
    attempt.until = timeout === null ? null : now + timeout
    this.#running.add(attempt)
    this.#heartbeat.started(attempt)
    this.#deadlines.watch(attempt.until)
  }

  #run(attempt: Attempt): void {
    const { definition, handler } = this.#handlers.get(attempt.record.type)!
    if (this.#settings.hooks.onTaskStart) this.#call(() => this.#settings.hooks.onTaskStart?.(attempt.task))
    attempt.run(definition, handler, this.#settled)
  }

  readonly #settled = (attempt: Attempt, outcome: Outcome): void => {
    this.#running.delete(attempt)
    if (!attempt.isWritten) this.#finisher.push(endingOf(this.#session, attempt, outcome))
    this.#pumpSoon()
  }

  #ended({ attempt }: Ending, result: Result): void {
    this.#heartbeat.drop(attempt)
    if ('error' in result) {
      tellIfStale(result.error, attempt.record)
      this.#session.logger.warn(`the result of task ${attempt.record.id} was not written: ${result.error.message}`, {
        code: result.error.code,
      })
    }
    if (this.#settings.hooks.onTaskEnd) {
      const [task, error] = 'error' in result ? [attempt.task, result.error] : [new Task(taskAfter(result)), null]
      this.#call(() => this.#settings.hooks.onTaskEnd?.(task, error))
    }
    this.#pumpSoon()
  }

  /** Written at once; the slot stays taken until the handler settles. */
  #timeOut(attempt: Attempt): void {
    attempt.isWritten = true
    attempt.abort('timeout')
    this.#finisher.push(timingOut(this.#session, attempt))
  }

  // ── ends ─────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Whoever waits for quiet is told: nothing runs, nothing waits, nothing is unwritten, and no queue has anything due. */
  #checkIdle(): void {
    if (this.#idle.length === 0 || this.#running.size > 0 || this.#waiting.length > 0 || this.#finisher.pending > 0)
      return
    if (this.#state === 'started' && !this.#intake.isResting) return
    for (const done of this.#idle.splice(0)) done()
  }

  #call(hook: () => void): void {
    try {
      hook()
    } catch (error) {
      this.#session.logger.error(`a worker hook threw: ${error instanceof Error ? error.message : String(error)}`)
    }
  }
}

const taskAfter = ({ task, change }: Exclude<Result, { readonly error: unknown }>): TaskRecord =>
  change === null ? task : applyChange(task, change)

const SIGNALS = ['SIGTERM', 'SIGINT'] as const
