/** Writes how attempts ended, those of one tick together. What meets a conflict or a lost reply is read again, together too. */
import { asHoldfastError, HoldfastError, isOfTheStore, mayPass } from '../core/errors.ts'
import { hasOp, type MoveName } from '../core/machine.ts'
import type { Change, Instant, TaskRecord } from '../core/task.ts'
import type { Attempt } from './attempt.ts'
import { pause } from './clock.ts'
import { notFound, type Session } from './session.ts'

export interface Ending {
  readonly attempt: Attempt
  readonly move: MoveName
  decide(task: TaskRecord, now: Instant): Change
}

/** The task with the change that was made of it, null when it is there already; or why it could not be moved. */
export type Result = { readonly task: TaskRecord; readonly change: Change | null } | { readonly error: HoldfastError }

/** Told once per ending. */
type Ended = (ending: Ending, result: Result) => void

export interface FinisherHost {
  readonly ended: Ended
  /** Tasks that end so are not kept: they are removed instead of moved. */
  discards(change: Change): boolean
}

/** An ending with the record to decide on: the one that was claimed, until it had to be read again. */
interface Unwritten {
  readonly ending: Ending
  readonly task: TaskRecord
  readonly tries: number
  /** An earlier try may have been written without our knowing. */
  readonly isUnclear: boolean
}

interface Decided extends Unwritten {
  readonly change: Change
}

const MOST = 1_000
const WRITES_IN_FLIGHT = 2
const MOST_TRIES = 20
const FIRST_WAIT = 50
const LONGEST_WAIT = 2_000

export class Finisher {
  readonly #session: Session
  readonly #host: FinisherHost
  #waiting: Unwritten[] = []
  #scheduled = false
  #inFlight = 0
  #pending = 0

  constructor(session: Session, host: FinisherHost) {
    this.#session = session
    this.#host = host
  }

  /** Endings that are not yet known to be written. */
  get pending(): number {
    return this.#pending
  }

  push(ending: Ending): void {
    this.#pending++
    this.#waiting.push({ ending, task: ending.attempt.record, tries: 0, isUnclear: false })
    this.#schedule()
  }

  #schedule(): void {
    if (this.#scheduled || this.#waiting.length === 0 || this.#inFlight >= WRITES_IN_FLIGHT) return
    this.#scheduled = true
    setImmediate(() => {
      this.#scheduled = false
      this.#inFlight++
      void this.#write(this.#waiting.splice(0, MOST)).finally(() => {
        this.#inFlight--
        this.#schedule()
      })
      this.#schedule()
    })
  }

  async #write(turn: readonly Unwritten[]): Promise<void> {
    const decided = this.#decide(turn)
    const kept = decided.filter(({ change }) => !this.#host.discards(change))
    const discarded = decided.length === kept.length ? [] : decided.filter(({ change }) => this.#host.discards(change))
    await Promise.all([
      this.#send(kept, (some) => this.#session.store.commit(some.map(({ change }) => change))),
      this.#send(discarded, (some) =>
        this.#session.store.remove(some.map(({ change: { id, revision } }) => ({ id, revision, endKey: false }))),
      ),
    ])
  }

  #decide(turn: readonly Unwritten[]): Decided[] {
    const decided: Decided[] = []
    // One instant for all of a turn: what is alike can be written as one.
    const now = this.#session.time.now()
    for (const { ending, task, tries, isUnclear } of turn) {
      try {
        decided.push({ ending, task, tries, isUnclear, change: ending.decide(task, now) })
      } catch (error) {
        this.#end(ending, { error: asHoldfastError(error) })
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
      const again: Unwritten[] = []
      for (let i = 0; i < some.length; i++) {
        const [one, result] = [some[i]!, results[i]!]
        if (result === 'conflict') again.push({ ...one, tries: one.tries + 1 })
        else if (result === 'gone') this.#gone(one)
        else this.#written(one)
      }
      await this.#readAgain(again)
    } catch (error) {
      if (mayPass(error)) await this.#afterOutage(some)
      // One bad ending must not hold up the others.
      else if (some.length > 1 && !isOfTheStore(error)) for (const one of some) await this.#send([one], write)
      else for (const { ending } of some) this.#end(ending, { error: asHoldfastError(error) })
    }
  }

  /** However long it takes: the answer is in the store, and the lease may still be ours. */
  async #afterOutage(some: readonly Unwritten[]): Promise<void> {
    const { clock, random } = this.#session
    const waited = Math.min(FIRST_WAIT * 2 ** some[0]!.tries, LONGEST_WAIT)
    await pause(clock, waited * (0.5 + random()))
    await this.#readAgain(some.map((one) => ({ ...one, tries: one.tries + 1, isUnclear: true })))
  }

  async #readAgain(some: readonly Unwritten[]): Promise<void> {
    if (some.length === 0) return
    try {
      const fresh = await this.#session.store.get(some.map(({ ending }) => ending.attempt.record.id))
      const again: Unwritten[] = []
      for (const [i, task] of fresh.entries()) {
        const one = some[i]!
        const { ending } = one
        if (task === null) this.#gone(one)
        else if (hasOp(task, ending.attempt.token, [ending.move])) this.#end(ending, { task, change: null })
        else if (one.tries > MOST_TRIES && !one.isUnclear) this.#end(ending, { error: tooManyConflicts(task.id) })
        else again.push({ ...one, task })
      }
      if (again.length > 0) await this.#write(again)
    } catch (error) {
      if (mayPass(error)) await this.#afterOutage(some)
      else for (const { ending } of some) this.#end(ending, { error: asHoldfastError(error) })
    }
  }

  #written(one: Decided): void {
    this.#session.events.moved(one.task, one.change)
    this.#end(one.ending, one)
  }

  /** Removed: by an earlier try of ours whose reply was lost, or by somebody else. */
  #gone(one: Unwritten): void {
    const { ending, task, isUnclear } = one
    this.#end(ending, isUnclear ? { task, change: null } : { error: notFound(task.id) })
  }

  #end(ending: Ending, result: Result): void {
    this.#pending--
    this.#host.ended(ending, result)
  }
}

const tooManyConflicts = (id: string): HoldfastError =>
  new HoldfastError('STORE_CONFLICT', `task ${id} changed under every one of ${MOST_TRIES} tries`, { id })
