/** How many requests may be under way at once: more while the server keeps up, half as many when it does not. */

const LEAST = 2
/** One failure says nothing: of the last requests this share must have failed. */
const TOO_MANY = 0.35
/** How much the last request counts against all before it. */
const WEIGHT = 1 / 40
/** Narrowed at most this often: the failures of one burst are one sign. */
const BREATH = 200

export interface LaneOptions {
  readonly start: number
  readonly most: number
}

/** `now`: a lease depends on it, so it does not queue. `next`: it has queued before. */
export type Turn = 'now' | 'next' | 'last'

export class Lanes {
  readonly #most: number
  #width: number
  #running = 0
  readonly #waiting: (() => void)[] = []
  /** Share of requests that failed lately. */
  #failing = 0
  #narrowedAt = Number.NEGATIVE_INFINITY

  constructor({ start, most }: LaneOptions) {
    this.#width = start
    this.#most = most
  }

  get width(): number {
    return Math.floor(this.#width)
  }

  async run<T>(call: () => Promise<T>, turn: Turn = 'last'): Promise<T> {
    if (turn === 'now' || this.#running < this.width) this.#running++
    // Whoever leaves hands its place on, so that nobody slips in between.
    else
      await new Promise<void>((enter) => (turn === 'next' ? this.#waiting.unshift(enter) : this.#waiting.push(enter)))
    try {
      const answer = await call()
      this.#succeeded()
      return answer
    } finally {
      this.#running--
      while (this.#running < this.width && this.#waiting.length > 0) {
        this.#running++
        this.#waiting.shift()!()
      }
    }
  }

  #succeeded(): void {
    this.#failing -= this.#failing * WEIGHT
    this.#width = Math.min(this.#most, this.#width + 1 / this.#width)
  }

  /** The server did not answer, or said that it cannot. */
  failed(): void {
    this.#failing += (1 - this.#failing) * WEIGHT
    const now = performance.now()
    if (this.#failing < TOO_MANY || now - this.#narrowedAt < BREATH) return
    this.#narrowedAt = now
    this.#width = Math.max(LEAST, this.#width / 2)
  }
}
