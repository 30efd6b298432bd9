/** Time limits of running attempts: one timer, set to the earliest limit. */

import type { TaskRecord } from '../../core/task.ts'
import { formatDuration } from '../../core/values/durations.ts'
import { type Cancel, type Clock, soon } from '../clock.ts'
import type { Attempt } from './attempt.ts'

/** A timer that fires this late was delayed by a busy event loop. */
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

  /** Limits mostly arrive in order, so the timer is rarely reset. */
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
    // The replies that handlers wait for may have arrived in time: let the event loop deliver them first.
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
