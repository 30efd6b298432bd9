/** How many requests may be under way at once: more while the server keeps up, half as many when it does not. */

const LEAST = 2
/** Halved at most this often: the failures of one burst are one sign. */
const BREATH = 100

export interface LaneOptions {
  readonly start: number
  readonly most: number
}

export class Lanes {
  readonly #most: number
  #width: number
  #running = 0
  readonly #waiting: (() => void)[] = []
  #narrowedAt = Number.NEGATIVE_INFINITY

  constructor({ start, most }: LaneOptions) {
    this.#width = start
    this.#most = most
  }

  get width(): number {
    return Math.floor(this.#width)
  }

  /** `isUrgent`: a lease depends on it, so it does not queue. */
  async run<T>(call: () => Promise<T>, isUrgent = false): Promise<T> {
    if (isUrgent || this.#running < this.width) this.#running++
    // Whoever leaves hands its place on, so that nobody slips in between.
    else await new Promise<void>((enter) => this.#waiting.push(enter))
    try {
      const answer = await call()
      this.#width = Math.min(this.#most, this.#width + 1 / this.#width)
      return answer
    } finally {
      this.#running--
      while (this.#running < this.width && this.#waiting.length > 0) {
        this.#running++
        this.#waiting.shift()!()
      }
    }
  }

  /** The server is slow or failing. */
  narrow(): void {
    const now = performance.now()
    if (now - this.#narrowedAt < BREATH) return
    this.#narrowedAt = now
    this.#width = Math.max(LEAST, this.#width / 2)
  }
}
