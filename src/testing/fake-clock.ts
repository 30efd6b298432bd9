/** A clock that stands still until a test advances it, and deterministic random numbers. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Instant } from '../core/task.ts'
import type { Cancel, Clock } from '../runtime/clock.ts'
import { Random } from './random.ts'

/** Where a `FakeClock` begins. */
export interface FakeClockOptions {
  /** The start time. */
  readonly now?: Instant
  /** For `random`: the same seed gives the same numbers. */
  readonly seed?: number
}

interface Timer {
  readonly at: number
  /** Timers of the same instant fire in the order in which they were set. */
  readonly n: number
  readonly tick: () => void
}

const START: Instant = Date.UTC(2026, 0, 28, 12)
/** After this many turns of the event loop without a use of the clock, nothing is running any more. */
const QUIET_TURNS = 4
/** Code that is still busy after this many turns will never settle. */
const MOST_TURNS = 100_000

/** `connect('memory:', { clock, random: clock.random })`: then only `advance` makes time pass. */
export class FakeClock implements Clock {
  /** Pass it to `connect` together with the clock. */
  readonly random: () => number
  readonly #started: Instant
  readonly #timers = new Set<Timer>()
  #elapsed = 0
  #n = 0
  /** Grows with every use of the clock; the runtime uses it for everything it does. */
  #uses = 0

  constructor({ now = START, seed = 1 }: FakeClockOptions = {}) {
    this.#started = now
    const dice = new Random(seed)
    this.random = () => dice.next()
  }

  wall(): Instant {
    this.#uses++
    return this.#started + this.#elapsed
  }

  mono(): number {
    this.#uses++
    return this.#elapsed
  }

  after(delay: number, tick: () => void): Cancel {
    this.#uses++
    const timer: Timer = { at: this.#elapsed + Math.max(0, delay), n: ++this.#n, tick }
    this.#timers.add(timer)
    return () => this.#timers.delete(timer)
  }

  /** Timers that have been set and have not fired. */
  get pendingTimers(): number {
    return this.#timers.size
  }

  /** Advances time: each timer fires at its own instant, and everything it starts settles before the next one fires. */
  async advance(milliseconds: number): Promise<void> {
    if (!(milliseconds >= 0)) throw new RangeError(`time only goes forward, not by ${milliseconds} ms`)
    const end = this.#elapsed + milliseconds
    await this.settle()
    for (let timer = this.#next(end); timer !== undefined; timer = this.#next(end)) {
      this.#timers.delete(timer)
      this.#elapsed = Math.max(this.#elapsed, timer.at)
      timer.tick()
      await this.settle()
    }
    // Something that it started may have advanced further.
    this.#elapsed = Math.max(this.#elapsed, end)
  }

  advanceTo(instant: Instant): Promise<void> {
    return this.advance(instant - this.#started - this.#elapsed)
  }

  /** Runs everything that needs no time: promises, and the turns of the event loop with which the runtime batches. */
  async settle(): Promise<void> {
    let quiet = 0
    for (let turn = 0; quiet < QUIET_TURNS; turn++) {
      if (turn === MOST_TURNS) throw new Error('something never settles, although no time passes')
      const before = this.#uses
      await nextTurn()
      quiet = this.#uses === before ? quiet + 1 : 0
    }
  }

  #next(end: number): Timer | undefined {
    let next: Timer | undefined
    for (const timer of this.#timers) {
      if (timer.at <= end && (next === undefined || timer.at < next.at || (timer.at === next.at && timer.n < next.n)))
        next = timer
    }
    return next
  }
}
