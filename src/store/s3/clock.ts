/** The server's time as its answers tell it: each says the second, and many together say more than that. */
import type { Instant } from '../../core/task.ts'

/** What a clock may gain or lose against ours, per millisecond. */
const DRIFT = 1e-4
const SECOND = 1_000

export class ServerClock {
  /** The server's time is monotonic time plus something between these two. */
  #least = Number.NEGATIVE_INFINITY
  #most = Number.POSITIVE_INFINITY
  #heardAt = Number.NEGATIVE_INFINITY
  #shown = 0

  /** The `Date` of an answer, and monotonic when it was asked for and came. It was right at some moment in between. */
  heard(date: string | undefined, askedAt: number, cameAt: number): void {
    const second = Date.parse(date ?? '')
    if (Number.isNaN(second)) return
    const aged = this.#heardAt === Number.NEGATIVE_INFINITY ? 0 : (cameAt - this.#heardAt) * DRIFT
    const least = Math.max(this.#least - aged, second - cameAt)
    const most = Math.min(this.#most + aged, second + SECOND - askedAt)
    this.#heardAt = cameAt
    // No overlap: that clock was set, or another server's answered. The last answer counts.
    this.#least = least < most ? least : second - cameAt
    this.#most = least < most ? most : second + SECOND - askedAt
  }

  /** How long ago an answer came. */
  age(mono: number): number {
    return mono - this.#heardAt
  }

  /** Never goes back. */
  read(mono: number): { at: Instant; uncertainty: number } {
    const aged = this.age(mono) * DRIFT
    const [least, most] = [this.#least - aged + mono, this.#most + aged + mono]
    const at = Math.max(this.#shown, Math.floor((least + most) / 2))
    this.#shown = at
    return { at, uncertainty: Math.ceil(Math.max(at - least, most - at)) }
  }
}
