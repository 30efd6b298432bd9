/** Collects the writes of one tick and sends them together. A write may be under way while the next one is collected. */
import { soon } from '../clock.ts'

const LARGEST_WRITE = 1_000
const WRITES_IN_FLIGHT = 2

export class TickWrites<Item> {
  /** Never rejects. */
  readonly #write: (items: readonly Item[]) => Promise<void>
  #waiting: Item[] = []
  #isScheduled = false
  #inFlight = 0

  constructor(write: (items: readonly Item[]) => Promise<void>) {
    this.#write = write
  }

  push(item: Item): void {
    this.#waiting.push(item)
    this.#schedule()
  }

  #schedule(): void {
    if (this.#isScheduled || this.#waiting.length === 0 || this.#inFlight >= WRITES_IN_FLIGHT) return
    this.#isScheduled = true
    soon(() => {
      this.#isScheduled = false
      this.#inFlight++
      void this.#write(this.#waiting.splice(0, LARGEST_WRITE)).finally(() => {
        this.#inFlight--
        this.#schedule()
      })
      this.#schedule()
    })
  }
}
