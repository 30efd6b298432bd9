/** The server's time from the `Date` header of its replies. One reply gives the second. Many replies together give more. */
import type { Instant } from '../../core/task.ts'

/** How much two clocks may drift apart, per millisecond. */
const DRIFT = 1e-4
const SECOND = 1_000

export class ServerClock {
  /** The server's time is the monotonic time plus an offset between these two. */
  #least = Number.NEGATIVE_INFINITY
  #most = Number.POSITIVE_INFINITY
  #observedAt = Number.NEGATIVE_INFINITY
  #latest = 0

  /**
   * Takes the `Date` of a reply, and the monotonic times of request and reply. The date was correct at some moment in
   * between.
   */
  observe(date: string | undefined, sentAt: number, repliedAt: number): void {
    const second = Date.parse(date ?? '')
    if (Number.isNaN(second)) return
    const aged = this.#observedAt === Number.NEGATIVE_INFINITY ? 0 : (repliedAt - this.#observedAt) * DRIFT
    const least = Math.max(this.#least - aged, second - repliedAt)
    const most = Math.min(this.#most + aged, second + SECOND - sentAt)
    this.#observedAt = repliedAt
    // No overlap: the server's clock was set, or another server replied. The last reply counts.
    this.#least = least < most ? least : second - repliedAt
    this.#most = least < most ? most : second + SECOND - sentAt
  }

  age(mono: number): number {
    return mono - this.#observedAt
  }

  /** It is known less well than one quick reply tells it. */
  isVague(mono: number): boolean {
    return this.#most - this.#least + 2 * this.age(mono) * DRIFT > 2 * SECOND
  }

  /** Never goes back. */
  read(mono: number): { at: Instant; uncertainty: number } {
    const aged = this.age(mono) * DRIFT
    const [least, most] = [this.#least - aged + mono, this.#most + aged + mono]
    const at = Math.max(this.#latest, Math.floor((least + most) / 2))
    this.#latest = at
    return { at, uncertainty: Math.ceil(Math.max(at - least, most - at)) }
  }
}
