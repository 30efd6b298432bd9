/** Time limits of running attempts: one timer for all, set to the first of them. */
import type { Attempt } from './attempt.ts'
import type { Cancel, Clock } from './clock.ts'

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

  /** Limits mostly come in order, so the timer is seldom set anew. */
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
    const now = this.#clock.mono()
    this.#next = Number.POSITIVE_INFINITY
    for (const attempt of this.#running) {
      if (attempt.until === null || attempt.isWritten) continue
      if (attempt.until <= now) this.#passed(attempt)
      else this.watch(attempt.until)
    }
  }
}
