/** How many requests may be under way at once: grows while the server keeps up, halves when it does not. */

const LEAST = 2
/** The limit is halved when this share of recent requests failed. A single failure says nothing. */
const TOO_MANY = 0.35
/** The weight of the latest request in that share. */
const WEIGHT = 1 / 40
/** The limit is halved at most this often: the failures of one burst count once. */
const PAUSE = 200

export interface ConcurrencyOptions {
  readonly start: number
  readonly most: number
}

/** `urgent`: a lease depends on the request, so it does not queue. `next`: it goes to the front of the queue. */
export type Priority = 'urgent' | 'next' | 'last'

export class AdaptiveConcurrency {
  readonly #most: number
  #limit: number
  #running = 0
  readonly #waiting: (() => void)[] = []
  /** The share of recent requests that failed. */
  #failing = 0
  #halvedAt = Number.NEGATIVE_INFINITY

  constructor({ start, most }: ConcurrencyOptions) {
    this.#limit = start
    this.#most = most
  }

  get limit(): number {
    return Math.floor(this.#limit)
  }

  async run<T>(call: () => Promise<T>, priority: Priority = 'last'): Promise<T> {
    if (priority === 'urgent' || this.#running < this.limit) this.#running++
    // A finished request counts the next one in, so that no new request takes its place.
    else
      await new Promise<void>((enter) =>
        priority === 'next' ? this.#waiting.unshift(enter) : this.#waiting.push(enter),
      )
    try {
      const answer = await call()
      this.#succeeded()
      return answer
    } finally {
      this.#running--
      while (this.#running < this.limit && this.#waiting.length > 0) {
        this.#running++
        this.#waiting.shift()!()
      }
    }
  }

  #succeeded(): void {
    this.#failing -= this.#failing * WEIGHT
    this.#limit = Math.min(this.#most, this.#limit + 1 / this.#limit)
  }

  /** The server did not answer, or reported that it is overloaded. */
  failed(): void {
    this.#failing += (1 - this.#failing) * WEIGHT
    const now = performance.now()
    if (this.#failing < TOO_MANY || now - this.#halvedAt < PAUSE) return
    this.#halvedAt = now
    this.#limit = Math.max(LEAST, this.#limit / 2)
  }
}
