/** Time limits of running attempts: one timer for all, set to the first of them. */

import { formatDuration } from '../../core/durations.ts'
import type { TaskRecord } from '../../core/task.ts'
import { type Cancel, type Clock, soon } from '../clock.ts'
import type { Attempt } from './attempt.ts'

/** A timer that fires this much too late was held up by a busy event loop. */
const LATE = 20

export class Deadlines {
  readonly #clock: Clock
  readonly #running: ReadonlySet<Attempt>
  readonly #passed: (attempt: Attempt) => void
  #next = Number.POSITIVE_INFINITY
  #cancel: Cancel = () => {}

  constructor(clock: Clock, running: ReadonlySet<Attempt>, passed: (attempt: Attempt) => void) {
    this.#clock = clock
    this.#running = running
    this.#passed = passed
  }

  /** Limits mostly come in order, so the timer is seldom set again. */
  watch(until: number | null): void {
    if (until === null || until >= this.#next) return
    this.#cancel()
    this.#next = until
    this.#cancel = this.#clock.after(until - this.#clock.mono(), () => this.#look())
  }

  close(): void {
    this.#cancel()
  }

  #look(): void {
    const isLate = this.#clock.mono() - this.#next > LATE
    this.#next = Number.POSITIVE_INFINITY
    // Then what handlers were waiting for has perhaps come in time, and is dealt with first.
    if (isLate) soon(() => this.#judge())
    else this.#judge()
  }

  #judge(): void {
    const now = this.#clock.mono()
    for (const attempt of this.#running) {
      if (attempt.until === null || attempt.isWritten || attempt.isTimedOut) continue
      if (attempt.until <= now) this.#passed(attempt)
      else this.watch(attempt.until)
    }
  }
}

export const timedOut = ({ timeout }: TaskRecord): Error =>
  Object.assign(new Error(`timed out after ${formatDuration(timeout!)}`), { name: 'TimeoutError' })
