/**
 * Tells when claims have become slow, because other workers claim from the same queue or the server has no free core. A second claim beside
 * the first then has to pass what all of them have locked, and shares a core with the others.
 */

/** Times as long as the fastest: two claims of one worker beside its own writes stay below. */
const SLOWED = 3
/** What was fastest is forgotten slowly: tasks may have become larger. */
const DRIFT = 1.001
/** A small claim takes longer per task. */
const FEWEST = 50

export class ClaimPace {
  /** Milliseconds a task. */
  #fastest = Number.POSITIVE_INFINITY
  #last = 0

  /** A claim ended that took `ms` on the server. */
  claimed(tasks: number, ms: number): void {
    if (tasks < FEWEST) return
    // The server's clock counts whole milliseconds.
    this.#last = Math.max(1, ms) / tasks
    this.#fastest = Math.min(this.#last, this.#fastest * DRIFT)
  }

  get isSlowed(): boolean {
    return this.#last > this.#fastest * SLOWED
  }
}
