/**
 * Writes the journals of running attempts. The writes of one tick, of all attempts, are one call to the store. After a conflict or a lost reply
 * the task is read and the write decided again, for as long as the lease is held.
 */
import { asHoldfastError, HoldfastError, mayPass } from '../../../core/errors.ts'
import { holding } from '../../../core/machine.ts'
import { applyChange, type Change, type Instant, type TaskRecord } from '../../../core/task.ts'
import { fullJitter } from '../../../core/values/jitter.ts'
import { pause } from '../../clock.ts'
import { notFound, type Session } from '../../session.ts'
import { tellIfStale } from '../../tasks/stale-writes.ts'
import { type Attempt, besideJoined } from '../attempt.ts'
import { TickWrites } from '../tick-writes.ts'

/** One write of one attempt. An attempt has at most one at a time. */
export interface JournalWrite {
  readonly attempt: Attempt
  /** Decides the write on the current record; null: there is nothing left to write. */
  decide(task: TaskRecord, now: Instant): Change | null
  /** The record contains an earlier try of this write whose reply was lost. */
  isWrittenIn(task: TaskRecord): boolean
  /** Called when the record of the attempt contains the change. */
  written(): void
  failed(error: unknown): void
}

interface Decided {
  readonly write: JournalWrite
  /** The record on which the write was decided. */
  readonly task: TaskRecord
  readonly change: Change
}

const WAITS = { first: 20, longest: 1_000 }
/** How often a write is tried, half a second apart on average, while a transaction of the handler stays open. */
const MOST_LOCKED = 20

export class JournalWriter {
  readonly #session: Session
  readonly #writes = new TickWrites<JournalWrite>((some) => this.#write(some))

  constructor(session: Session) {
    this.#session = session
  }

  push(write: JournalWrite): void {
    this.#writes.push(write)
  }

  async #write(some: readonly JournalWrite[]): Promise<void> {
    const decided = this.#decide(some)
    if (decided.length === 0) return
    let committed: readonly string[]
    try {
      committed = await this.#session.store.commit(
        decided.map(({ write, change }) => besideJoined(write.attempt, change)),
      )
    } catch (error) {
      this.#refused(decided, error)
      return
    }
    const again: Decided[] = []
    for (const [i, one] of decided.entries()) {
      if (committed[i] === 'written') this.#written(one)
      else if (committed[i] === 'gone') this.#failed(one.write, notFound(one.change.id))
      else again.push(one)
    }
    for (const one of again) void this.#again(one, 0)
  }

  #decide(some: readonly JournalWrite[]): Decided[] {
    const now = this.#session.time.now()
    return some.flatMap((write) => {
      const decided = this.#decideOne(write, now)
      return decided === null ? [] : [decided]
    })
  }

  /** Returns null if the write is done, or cannot be done any more. */
  #decideOne(write: JournalWrite, now: Instant): Decided | null {
    const task = write.attempt.record
    try {
      const change = write.decide(task, now)
      if (change !== null) return { write, task, change }
      write.written()
      return null
    } catch (error) {
      this.#failed(write, error)
      return null
    }
  }

  /** One bad value must not fail the other writes of the tick. */
  #refused(decided: readonly Decided[], error: unknown): void {
    if (mayPass(error)) for (const one of decided) void this.#again(one, 1)
    else if (decided.length > 1) for (const { write } of decided) void this.#write([write])
    else this.#failed(decided[0]!.write, error)
  }

  /** Reads the task, and decides and writes again until it is written or the lease is gone. */
  async #again(first: Decided, outages: number): Promise<void> {
    const { write } = first
    const { attempt } = write
    const { clock, random, store, time } = this.#session
    let tried = first
    let locked = 0
    for (let tries = 0, failures = outages; ; tries++) {
      if (tries + failures > 0) await pause(clock, fullJitter(WAITS, tries + failures, random()))
      if (attempt.abortedFor === 'lease-lost' || attempt.isWritten) return this.#failed(write, lost(attempt))
      try {
        const [fresh] = await store.get([attempt.record.id])
        if (fresh === null || fresh === undefined) return this.#failed(write, notFound(attempt.record.id))
        // Checked before the lease, because a park gives the lease up.
        if (write.isWrittenIn(fresh)) return this.#recognised(tried, fresh)
        holding(fresh, attempt)
        attempt.record = fresh
        const decided = this.#decideOne(write, time.now())
        if (decided === null) return
        tried = decided
        const [committed] = await store.commit([besideJoined(attempt, decided.change)])
        if (committed === 'written') return this.#written(decided)
        // A conflict without a change: the row is locked.
        const isLocked = committed === 'conflict' && attempt.hasJoined && fresh.revision === decided.change.revision
        locked = isLocked ? locked + 1 : 0
        if (locked > MOST_LOCKED) return this.#failed(write, stillOpen(attempt))
        if (committed === 'gone') return this.#failed(write, notFound(attempt.record.id))
        failures = 0
      } catch (error) {
        if (!mayPass(error)) return this.#failed(write, error)
        failures++
      }
    }
  }

  #written({ write, task, change }: Decided): void {
    this.#session.events.moved(task, change)
    write.attempt.record = applyChange(task, change)
    write.written()
  }

  /** An earlier try was written. The task may already be on its next run, which is not this attempt's. */
  #recognised({ write, task, change }: Decided, fresh: TaskRecord): void {
    this.#session.events.moved(task, change)
    write.attempt.record = change.from === change.set.status ? fresh : applyChange(task, change)
    write.written()
  }

  #failed({ attempt, failed }: JournalWrite, error: unknown): void {
    const known = asHoldfastError(error)
    tellIfStale(known, attempt.record)
    if (known.code === 'STALE_LEASE' && !attempt.isWritten) attempt.loseLease()
    failed(known)
  }
}

/** A handler that waits for this write must end its transaction first. */
const stillOpen = ({ record: { id } }: Attempt): HoldfastError =>
  new HoldfastError(
    'TX_NOT_COMMITTED',
    `task ${id} is locked by a transaction that ctx.step or ctx.complete joined: end it before the next step`,
    { id },
  )

/** The attempt is over, and its results are ignored. */
export const lost = ({ record: { id } }: Attempt): HoldfastError =>
  new HoldfastError('STALE_LEASE', `this run of task ${id} is over`, { id })
