/**
 * Writes the end of an attempt. Reads top to bottom: the outcome becomes a move, the move is decided on the record, the endings of
 * one tick are written together, and after a conflict or a lost reply the task is read and the move decided again.
 */
import { asHoldfastError, type HoldfastError, isContactLost, isOfTheStore, mayPass } from '../../core/errors.ts'
import { type RescheduleWish, waitOf } from '../../core/failure.ts'
import * as machine from '../../core/machine.ts'
import type { Change, Instant, TaskRecord } from '../../core/task.ts'
import { fullJitter } from '../../core/values/jitter.ts'
import { pause } from '../clock.ts'
import { notFound, type Session } from '../session.ts'
import { tellIfStale } from '../tasks/stale-writes.ts'
import { type Attempt, besideJoined, type Outcome } from './attempt.ts'
import type { Heartbeat } from './heartbeat.ts'
import { TickWrites } from './tick-writes.ts'

export interface FinisherHost {
  readonly heartbeat: Heartbeat
  /** True if tasks that end with this change are removed instead of moved (`retention: 0`). */
  discards(change: Change): boolean
  /** Never rejects. */
  pauseQueue(task: TaskRecord, wish: RescheduleWish): Promise<void>
  /**
   * Called once per attempt, with the task and the change that is not yet applied to it (null: the task is as it was read), or with the reason
   * why the end could not be written.
   */
  ended(attempt: Attempt, result: TaskRecord | HoldfastError, change: Change | null): void
}

/** The move that ends an attempt. It is decided when it is written, on the current record. */
interface Ending {
  readonly attempt: Attempt
  readonly move: machine.MoveName
  decide(task: TaskRecord, now: Instant): Change
}

/** An ending with the record to decide on: the claimed record, or the one that was read again later. */
interface Unwritten {
  readonly ending: Ending
  readonly task: TaskRecord
  /** How often another process wrote first, and how often the write failed. */
  readonly conflicts: number
  readonly outages: number
  /** An earlier try may have been written although its reply was lost. */
  readonly isUnclear: boolean
  /** The last try, and the record on which it was decided. */
  readonly tried: { readonly task: TaskRecord; readonly change: Change } | null
}

interface Decided extends Unwritten {
  readonly change: Change
}

const FEW_CONFLICTS = 3
const APART = { first: 1, longest: 200 }
const FIRST_WAIT = 50
const LONGEST_WAIT = 2_000

export class Finisher {
  readonly #session: Session
  readonly #host: FinisherHost
  readonly #writes = new TickWrites<Unwritten>((some) => this.#write(some))
  #pending = 0

  constructor(session: Session, host: FinisherHost) {
    this.#session = session
    this.#host = host
  }

  /** Endings that are not yet known to be written. */
  get pending(): number {
    return this.#pending
  }

  // ── 1. the outcome becomes a move ────────────────────────────────────────────────────────────────────────────

  finish(attempt: Attempt, outcome: Outcome): void {
    if (attempt.isTimedOut) this.timeOut(attempt)
    else if (outcome.kind === 'complete') {
      this.#push(attempt, 'complete', (task, now) => machine.complete(task, attempt, outcome.output, now))
    } else if (outcome.kind === 'reschedule') {
      if (outcome.wish.pause === null) this.#reschedule(attempt, outcome.wish)
      else void this.#pauseFirst(attempt, outcome.wish)
    } else if (attempt.abortedFor === 'shutdown') {
      // A handler that stopped because its signal aborted has not failed.
      this.release(attempt)
    } else this.#fail(attempt, outcome.error, outcome.permanent)
  }

  #reschedule(attempt: Attempt, wish: RescheduleWish): void {
    const { extendExpiration } = wish
    this.#push(attempt, 'reschedule', (task, now) =>
      machine.reschedule(task, attempt, { delay: waitOf(wish, now), extendExpiration, now }),
    )
  }

  async #pauseFirst(attempt: Attempt, wish: RescheduleWish): Promise<void> {
    // Counted as pending, so that a stopping worker waits for it.
    this.#pending++
    await this.#host.pauseQueue(attempt.record, wish)
    this.#pending--
    this.#reschedule(attempt, wish)
  }

  /** Ends an attempt whose handler did not stop; its result is ignored. */
  abandon(attempt: Attempt, error: Error): void {
    this.#fail(attempt, error, false)
  }

  #fail(attempt: Attempt, error: unknown, permanent: boolean): void {
    const random = this.#session.random()
    this.#push(attempt, 'fail', (task, now) => machine.fail(task, attempt, { error, permanent, now, random }))
  }

  release(attempt: Attempt): void {
    this.#push(attempt, 'release', (task, now) => machine.release(task, attempt, now))
  }

  timeOut(attempt: Attempt): void {
    const random = this.#session.random()
    this.#push(attempt, 'time-out', (task, now) => machine.timeOut(task, attempt, now, random))
  }

  #push(attempt: Attempt, move: machine.MoveName, decide: Ending['decide']): void {
    this.#pending++
    this.#writes.push({
      ending: { attempt, move, decide },
      task: attempt.record,
      conflicts: 0,
      outages: 0,
      isUnclear: false,
      tried: null,
    })
  }

  // ── 2. the endings of one tick are decided and written ───────────────────────────────────────────────────────

  async #write(some: readonly Unwritten[]): Promise<void> {
    const decided = this.#decide(some)
    const kept = decided.filter(({ change }) => !this.#host.discards(change))
    const discarded = decided.length === kept.length ? [] : decided.filter(({ change }) => this.#host.discards(change))
    await Promise.all([
      this.#send(kept, (each) => this.#session.store.commit(each.map(({ change }) => change))),
      this.#send(discarded, (each) =>
        this.#session.store.remove(each.map(({ change: { id, revision } }) => ({ id, revision, endKey: false }))),
      ),
    ])
  }

  #decide(some: readonly Unwritten[]): Decided[] {
    const decided: Decided[] = []
    // One instant per write, so that equal changes can be written as one.
    const now = this.#session.time.now()
    for (const one of some) {
      try {
        const change = besideJoined(one.ending.attempt, one.ending.decide(one.task, now))
        decided.push({ ...one, change, tried: { task: one.task, change } })
      } catch (error) {
        this.#failed(one.ending, asHoldfastError(error))
      }
    }
    return decided
  }

  async #send(
    some: readonly Decided[],
    write: (some: readonly Decided[]) => Promise<readonly string[]>,
  ): Promise<void> {
    if (some.length === 0) return
    try {
      const results = await write(some)
      const conflicts: Unwritten[] = []
      for (let i = 0; i < some.length; i++) {
        const [one, result] = [some[i]!, results[i]!]
        if (result === 'conflict') conflicts.push({ ...one, conflicts: one.conflicts + 1 })
        else if (result === 'gone') this.#gone(one)
        else this.#written(one)
      }
      await this.#readAgain(conflicts)
    } catch (error) {
      if (mayPass(error)) await this.#afterOutage(some, error)
      // One bad ending must not hold up the others.
      else if (some.length > 1 && !isOfTheStore(error)) for (const one of some) await this.#send([one], write)
      else for (const { ending } of some) this.#failed(ending, asHoldfastError(error))
    }
  }

  // ── 3. after a conflict or a lost reply: read, recognise, decide again ───────────────────────────────────────

  /** Retries without a time limit: the result must be stored, and the lease may still be ours. */
  async #afterOutage(some: readonly Unwritten[], error: unknown): Promise<void> {
    const { clock, random } = this.#session
    // After a refusal nothing was written.
    const isUnclear = isContactLost(error)
    const wait = Math.min(FIRST_WAIT * 2 ** some[0]!.outages, LONGEST_WAIT)
    await pause(clock, wait * (0.5 + random()))
    await this.#readAgain(
      some.map((one) => ({ ...one, outages: one.outages + 1, isUnclear: one.isUnclear || isUnclear })),
    )
  }

  async #readAgain(some: readonly Unwritten[]): Promise<void> {
    if (some.length === 0) return
    const { clock, random } = this.#session
    // Where many processes write to one task, all of them wait for a while, so that one gets through.
    const conflicts = Math.max(...some.map((one) => one.conflicts))
    if (conflicts > FEW_CONFLICTS) await pause(clock, fullJitter(APART, conflicts - FEW_CONFLICTS, random()))
    try {
      const fresh = await this.#session.store.get(some.map(({ ending }) => ending.attempt.record.id))
      const again: Unwritten[] = []
      for (const [i, task] of fresh.entries()) {
        const one = some[i]!
        const { ending } = one
        if (task === null) this.#gone(one)
        else if (machine.hasOp(task, ending.attempt.token, [ending.move])) this.#recognised(one, task)
        else again.push({ ...one, task })
      }
      if (again.length > 0) await this.#write(again)
    } catch (error) {
      if (mayPass(error)) await this.#afterOutage(some, error)
      else for (const { ending } of some) this.#failed(ending, asHoldfastError(error))
    }
  }

  // ── 4. the end ───────────────────────────────────────────────────────────────────────────────────────────────

  #written({ ending, task, change }: Decided): void {
    this.#session.events.moved(task, change)
    this.#end(ending, task, change)
  }

  /** An earlier try was written. The task may already be on its next run, so this reports how this run ended. */
  #recognised({ ending, tried }: Unwritten, task: TaskRecord): void {
    if (tried !== null) this.#session.events.moved(tried.task, tried.change)
    if (tried === null || task.revision === tried.change.revision + 1) this.#end(ending, task)
    else this.#end(ending, tried.task, tried.change)
  }

  /** The task was removed: by an earlier try of ours whose reply was lost, or by another process. */
  #gone({ ending, task, isUnclear, tried }: Unwritten): void {
    if (isUnclear) this.#end(ending, tried?.task ?? task, tried?.change)
    else this.#failed(ending, notFound(task.id))
  }

  #failed({ attempt }: Ending, error: HoldfastError): void {
    this.#drop(attempt)
    tellIfStale(error, attempt.record)
    this.#session.logger.warn(`the result of task ${attempt.record.id} was not written: ${error.message}`, {
      code: error.code,
    })
    this.#host.ended(attempt, error, null)
  }

  #end({ attempt }: Ending, task: TaskRecord, change: Change | null = null): void {
    this.#drop(attempt)
    this.#host.ended(attempt, task, change)
  }

  #drop(attempt: Attempt): void {
    this.#pending--
    this.#host.heartbeat.drop(attempt)
  }
}
