/** Limits a rate, by the monotonic clock. */
import { HoldfastError } from '../../core/errors.ts'
import { type Clock, pause } from '../clock.ts'

const LARGEST = 500
/** Batches a second at the most while a rate is kept: small enough to be even, large enough to be quick. */
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
