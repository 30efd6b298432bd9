/** A rate limit on the monotonic clock. */
import { HoldfastError } from '../../core/errors.ts'
import { type Clock, pause } from '../clock.ts'

const LARGEST = 500
/** The most batches per second under a rate limit: enough for an even rate, few enough to be efficient. */
const BATCHES = 10

export class Pace {
  readonly #clock: Clock
  readonly #rate: number | null
  readonly #begun: number
  #sent = 0

  constructor(clock: Clock, rate?: number) {
    if (rate !== undefined && !(Number.isFinite(rate) && rate > 0))
      throw new HoldfastError('INVALID_OPTION', 'rate must be a number greater than 0, in tasks per second', {
        field: 'rate',
      })
    this.#clock = clock
    this.#rate = rate ?? null
    this.#begun = clock.mono()
  }

  /** How many to send at once. */
  get batch(): number {
    return this.#rate === null ? LARGEST : Math.min(LARGEST, Math.max(1, Math.floor(this.#rate / BATCHES)))
  }

  /** Resolves when this many more may be sent, or when `signal` aborts. */
  async wait(count: number, signal?: AbortSignal): Promise<void> {
    if (this.#rate === null) return
    const early = this.#begun + (this.#sent / this.#rate) * 1_000 - this.#clock.mono()
    this.#sent += count
    if (early > 0) await pause(this.#clock, early, signal)
  }
}
