/** The handlers that run, from the claimed task to its outcome. Each task or batch takes one slot. */
import { AsyncLocalStorage } from 'node:async_hooks'
import { HoldfastError } from '../../core/errors.ts'
import { hasOp } from '../../core/machine.ts'
import { isParked } from '../../core/steps/step-errors.ts'
import { applyChange, type TaskRecord } from '../../core/task.ts'
import type { Client } from '../client.ts'
import type { BatchHandler } from '../handler.ts'
import { withPatience } from '../patience.ts'
import type { Session } from '../session.ts'
import { Attempt, type AttemptHost, type Outcome } from './attempt.ts'
import { BatchRun, timedOutWithBatch } from './batch-run.ts'
import { Deadlines, timedOut } from './deadlines.ts'
import type { Turn } from './fetch/lanes.ts'
import type { Finisher } from './finisher.ts'
import type { Handlers, Registered } from './handlers.ts'
import type { Heartbeat } from './heartbeat.ts'
import type { Hooks } from './hooks.ts'
import { START_LIMIT } from './isolate/pool.ts'
import type { WorkerSettings } from './options.ts'
import type { JoinedEnd } from './steps/in-transaction.ts'
import { JournalWriter } from './steps/journal-writer.ts'
import { StuckHandlers } from './stuck.ts'

export interface RunsHost {
  readonly client: Client
  readonly handlers: Handlers
  readonly heartbeat: Heartbeat
  readonly finisher: Finisher
  readonly hooks: Hooks
  /** The task of this attempt was parked, or completed in a transaction: there is nothing left to write. */
  over(attempt: Attempt): void
  /** A slot may be free. */
  freed(): void
  /** The set of stuck handlers has changed. */
  stuckChanged(): void
  /** As many handlers are stuck as there are slots. */
  allStuck(error: HoldfastError): void
}

export class Runs {
  readonly #session: Session
  readonly #host: RunsHost
  readonly #attemptHost: AttemptHost
  readonly #running = new Set<Attempt>()
  /** Running attempts that share the slot of another. */
  #sharing = 0
  readonly #deadlines: Deadlines
  readonly stuck: StuckHandlers
  /** Types whose handler went on after a park: each is warned about once. */
  readonly #swallowing = new Set<string>()
  /** Types whose handler returned before a step had ended: each is warned about once. */
  readonly #leaving = new Set<string>()

  constructor(session: Session, settings: WorkerSettings, host: RunsHost) {
    this.#session = session
    this.#host = host
    const { heartbeat, finisher, hooks } = host
    this.#deadlines = new Deadlines(session.clock, this.#running, (attempt) => this.#timeOut(attempt))
    this.stuck = new StuckHandlers(session, settings, {
      heartbeat,
      finisher,
      hooks,
      running: this.#running,
      freed: (attempts) => {
        for (const attempt of attempts) this.#leave(attempt)
        host.stuckChanged()
        host.freed()
      },
      allStuck: (error) => host.allStuck(error),
    })
    this.#attemptHost = {
      client: host.client,
      workerId: settings.id,
      logger: session.logger,
      maxPayload: session.maxPayload,
      progress: (attempt, text) => heartbeat.progress(attempt, text),
      aborted: (attempt) => this.stuck.watch(attempt),
      begun: (attempt) => void this.#limit(attempt, session.clock.mono()),
      outputChanged: (attempt, output) => hooks.outputChanged(attempt, output),
      outside: AsyncLocalStorage.snapshot(),
      steps: { session, writer: new JournalWriter(session), parked: (attempt) => this.#parked(attempt) },
    }
  }

  /** Attempts that have not settled, without those that are stuck. */
  get size(): number {
    return this.#running.size
  }

  /** The slots they take. */
  get slots(): number {
    return this.#running.size - this.#sharing
  }

  attemptOf(task: TaskRecord, claimedAt: number): Attempt {
    return new Attempt(task, this.#attemptHost, claimedAt)
  }

  start(turns: readonly Turn[]): void {
    for (const turn of turns) {
      if (turn instanceof Attempt) this.#running.add(turn)
      else for (const attempt of turn) this.#running.add(attempt)
    }
    // One by one: a handler may block the event loop, and the tasks behind it must not count as started.
    for (const turn of turns) {
      if (turn instanceof Attempt) this.#run(turn)
      else this.#runBatch(turn)
    }
  }

  abortAll(): void {
    for (const attempt of this.#running) attempt.abort('shutdown')
  }

  /** Forgets what has not settled: its leases will lapse. */
  abandon(): void {
    this.#running.clear()
    this.#sharing = 0
  }

  close(): void {
    this.#deadlines.close()
    this.stuck.close()
  }

  #leave(attempt: Attempt): void {
    if (!this.#running.delete(attempt) || attempt.batch === null) return
    if (--attempt.batch.running > 0) this.#sharing--
  }

  #isLost(attempt: Attempt, now: number): boolean {
    return attempt.abortedFor !== null || this.#host.heartbeat.isOverdue(attempt, now)
  }

  /** Returns false if the lease was given back meanwhile. */
  #limit(attempt: Attempt, from: number, timeout = attempt.record.timeout): boolean {
    attempt.until = timeout === null ? null : from + timeout
    if (!this.#host.heartbeat.started(attempt)) return false
    this.#deadlines.watch(attempt.until)
    return true
  }

  /** A run whose lease may be gone must not begin. The task is released; the store refuses that if the lease is no longer ours. */
  #run(attempt: Attempt): void {
    const registered = this.#host.handlers.of(attempt.record.type)
    const now = this.#session.clock.mono()
    // An isolated run has not begun until its child is ready.
    if (this.#isLost(attempt, now) || !this.#limit(attempt, registered.isIsolated ? now + START_LIMIT : now))
      this.#giveUp(attempt)
    else this.#call(attempt, registered)
  }

  #runBatch(attempts: readonly Attempt[]): void {
    const now = this.#session.clock.mono()
    const registered = this.#host.handlers.of(attempts[0]!.record.type)
    const ours = attempts.filter((attempt) => !this.#isLost(attempt, now))
    const timeout = shortest(ours)
    const members = ours.filter((attempt) => this.#limit(attempt, now, timeout))
    const kept = new Set(members)
    for (const attempt of attempts) if (!kept.has(attempt)) this.#giveUp(attempt)
    if (members.length === 0) return
    this.#sharing += members.length - 1
    const batch = new BatchRun(members, registered.batch as BatchHandler, this.#attemptHost, timeout)
    for (const attempt of members) attempt.batch = batch
    for (const attempt of members) this.#call(attempt, registered)
  }

  #call(attempt: Attempt, { definition, handler }: Registered): void {
    this.#host.hooks.taskStarts(attempt)
    attempt.run(definition, handler, this.#settled)
  }

  readonly #settled = (attempt: Attempt, outcome: Outcome): void => {
    // The write that parks the task is on its way: if it succeeds, this outcome counts for nothing.
    if (attempt.isParking) attempt.durable.whenDecided(() => this.#settled(attempt, outcome))
    else if (attempt.joinedEnd !== null && !attempt.isWritten) void this.#confirm(attempt, attempt.joinedEnd, outcome)
    else this.#ended(attempt, outcome)
  }

  /** The handler ended its task in its own transaction: the store knows whether that was committed. */
  async #confirm(attempt: Attempt, end: JoinedEnd, outcome: Outcome): Promise<void> {
    this.#host.heartbeat.settled(attempt)
    const task = await this.#endedIn(attempt, end)
    if (task === null) return this.#ended(attempt, outcome.kind === 'complete' ? notCommitted(attempt) : outcome)
    attempt.record = task
    attempt.isWritten = true
    this.#host.heartbeat.drop(attempt)
    this.#session.events.moved(end.task, end.change)
    this.#host.over(attempt)
    this.#ended(attempt, outcome)
  }

  /** The task as it ended; null: it has not ended, or the store cannot be asked. */
  async #endedIn({ record: { id }, token }: Attempt, end: JoinedEnd): Promise<TaskRecord | null> {
    try {
      const [task] = await withPatience(this.#session, () => this.#session.store.get([id]))
      // Retention may have removed it already.
      if (task === null || task === undefined) return applyChange(end.task, end.change)
      return hasOp(task, token, ['complete']) ? task : null
    } catch {
      return null
    }
  }

  #ended(attempt: Attempt, outcome: Outcome): void {
    this.#leave(attempt)
    this.#host.heartbeat.settled(attempt)
    if (this.stuck.settled(attempt)) this.#host.stuckChanged()
    if (attempt.isParked) this.#warnIfSwallowed(attempt, outcome)
    else if (outcome.kind === 'fail') attempt.failure ??= outcome
    else if (attempt.hasStepUnderWay) this.#warnOfLeftStep(attempt)
    if (!attempt.isWritten) this.#host.finisher.finish(attempt, outcome)
    attempt.batch?.settled(attempt)
    this.#host.freed()
  }

  /** The run is over. The slot stays taken until the handler settles or counts as stuck. */
  #parked(attempt: Attempt): void {
    attempt.isWritten = true
    attempt.isParked = true
    this.#host.heartbeat.drop(attempt)
    this.#host.over(attempt)
    attempt.abort('parked')
  }

  #warnIfSwallowed({ record: { id, type } }: Attempt, outcome: Outcome): void {
    if ((outcome.kind === 'fail' && isParked(outcome.error)) || this.#swallowing.has(type)) return
    this.#swallowing.add(type)
    this.#session.logger.warn(
      `the handler of '${type}' went on after its task was parked: what it did since counts for nothing. Do not catch Parked. This is said once for each type.`,
      { task: id, type },
    )
  }

  #warnOfLeftStep({ record: { id, type } }: Attempt): void {
    if (this.#leaving.has(type)) return
    this.#leaving.add(type)
    this.#session.logger.warn(
      `the handler of '${type}' returned while a step was under way: the step is not recorded. Await every ctx.step. This is said once for each type.`,
      { task: id, type },
    )
  }

  /** Writes the timeout at once. The slot stays taken until the handler settles or counts as stuck. */
  #timeOut(attempt: Attempt): void {
    const { record, batch } = attempt
    const isOwn = batch === null || batch.timeout === record.timeout
    const error = isOwn ? timedOut(record) : timedOutWithBatch(batch.timeout!)
    attempt.isTimedOut = true
    attempt.failure = { error }
    attempt.abort('timeout')
    // The child of an isolated run must be dead before its end is written.
    if (attempt.kill()) return
    attempt.isWritten = true
    if (isOwn) this.#host.finisher.timeOut(attempt)
    else this.#host.finisher.abandon(attempt, error)
  }

  #giveUp(attempt: Attempt): void {
    this.#leave(attempt)
    this.#host.finisher.release(attempt)
    this.#host.freed()
  }
}

const notCommitted = ({ record: { id } }: Attempt): Outcome => ({
  kind: 'fail',
  error: new HoldfastError(
    'TX_NOT_COMMITTED',
    `the handler of task ${id} returned, but the transaction that ctx.complete joined was not committed`,
    { id },
  ),
  permanent: false,
})

/** A batch has one time limit, the shortest of its tasks; null if none has any. */
const shortest = (attempts: readonly Attempt[]): number | null => {
  const timeouts = attempts.flatMap(({ record: { timeout } }) => timeout ?? [])
  return timeouts.length === 0 ? null : Math.min(...timeouts)
}
