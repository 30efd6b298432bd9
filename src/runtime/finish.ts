/** Writes how attempts ended: those of one tick as one commit, the odd one that meets a conflict by itself. */
import { HoldfastError, isContactLost, isHoldfastError } from '../core/errors.ts'
import type { MoveName } from '../core/machine.ts'
import { applyChange, type Change, type TaskRecord } from '../core/task.ts'
import type { Attempt } from './attempt.ts'
import { pause } from './clock.ts'
import type { Session } from './session.ts'
import { settle } from './settle.ts'

export interface Ending {
  readonly attempt: Attempt
  readonly moves: readonly MoveName[]
  decide(task: TaskRecord): Change
}

/** Told once per ending: how to get the task after the move (seldom asked for), or why it could not be moved. */
export type Ended = (ending: Ending, result: { task(): TaskRecord } | { readonly error: HoldfastError }) => void

const MOST = 1_000
const COMMITS_IN_FLIGHT = 2
const RETRY_EVERY = 200

export class Finisher {
  readonly #session: Session
  readonly #ended: Ended
  #waiting: Ending[] = []
  #scheduled = false
  #inFlight = 0
  #pending = 0

  constructor(session: Session, ended: Ended) {
    this.#session = session
    this.#ended = ended
  }

  /** Endings that are not yet known to be written. */
  get pending(): number {
    return this.#pending
  }

  push(ending: Ending): void {
    this.#pending++
    this.#waiting.push(ending)
    this.#schedule()
  }

  #schedule(): void {
    if (this.#scheduled || this.#waiting.length === 0 || this.#inFlight >= COMMITS_IN_FLIGHT) return
    this.#scheduled = true
    setImmediate(() => {
      this.#scheduled = false
      void this.#commit(this.#waiting.splice(0, MOST))
      this.#schedule()
    })
  }

  async #commit(endings: readonly Ending[]): Promise<void> {
    this.#inFlight++
    try {
      await this.#commitTogether(endings)
    } finally {
      this.#inFlight--
      this.#schedule()
    }
  }

  async #commitTogether(endings: readonly Ending[]): Promise<void> {
    const changes: Change[] = []
    const decided: Ending[] = []
    for (const ending of endings) {
      try {
        changes.push(ending.decide(ending.attempt.record))
        decided.push(ending)
      } catch (error) {
        this.#end(ending, { error: asHoldfastError(error) })
      }
    }
    try {
      const committed = await this.#session.store.commit(changes)
      for (const [i, result] of committed.entries()) {
        const ending = decided[i]!
        if (result !== 'written') void this.#alone(ending)
        else this.#written(ending, changes[i]!)
      }
    } catch {
      // Whatever it was, one bad ending must not hold up the others: each goes on by itself.
      for (const ending of decided) void this.#alone(ending)
    }
  }

  #written(ending: Ending, change: Change): void {
    const { record } = ending.attempt
    this.#session.events.moved(record, change)
    this.#end(ending, { task: () => applyChange(record, change) })
  }

  /** Until it is written, or somebody else has the task, or the attempt's lease is long gone. */
  async #alone(ending: Ending): Promise<void> {
    const { attempt, moves, decide } = ending
    for (;;) {
      try {
        const task = await settle(this.#session, attempt.record, { op: attempt.token, moves, decide })
        return this.#end(ending, { task: () => task })
      } catch (error) {
        if (!isContactLost(error)) return this.#end(ending, { error: asHoldfastError(error) })
        await pause(this.#session.clock, RETRY_EVERY * (0.5 + this.#session.random()))
      }
    }
  }

  #end(ending: Ending, result: Parameters<Ended>[1]): void {
    this.#pending--
    this.#ended(ending, result)
  }
}

const asHoldfastError = (error: unknown): HoldfastError =>
  isHoldfastError(error)
    ? error
    : new HoldfastError('INTERNAL', error instanceof Error ? error.message : String(error), {}, error)
