/** Counts events of the last second, in buckets of 50 ms. */

const BUCKET = 50
const BUCKETS = 20

export class RecentRate {
  readonly #mono: () => number
  readonly #counts = new Array<number>(BUCKETS).fill(0)
  #last = 0

  constructor(mono: () => number) {
    this.#mono = mono
  }

  add(count: number): void {
    this.#advance()
    this.#counts[this.#last % BUCKETS]! += count
  }

  /** The number of events in the last `span` milliseconds, at most one second. */
  within(span: number): number {
    this.#advance()
    let total = 0
    for (let i = 0; i < Math.min(BUCKETS, Math.ceil(span / BUCKET) + 1); i++)
      total += this.#counts[(this.#last - i + BUCKETS * 2) % BUCKETS]!
    return total
  }

  #advance(): void {
    const current = Math.floor(this.#mono() / BUCKET)
    for (let i = Math.max(this.#last + 1, current - BUCKETS + 1); i <= current; i++) this.#counts[i % BUCKETS] = 0
    this.#last = current
  }
}
