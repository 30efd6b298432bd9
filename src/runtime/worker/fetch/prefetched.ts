/** Claimed tasks that wait for a slot. Those that wait behind slow handlers are released, so that an idle worker can run them. */
import type { Cancel, Clock } from '../../clock.ts'
import type { Attempt } from '../attempt.ts'
import type { RecentRate } from './recent-rate.ts'

const A_SECOND = 1_000

export class Prefetched {
  readonly #clock: Clock
  readonly #starts: RecentRate
  readonly #release: (attempts: readonly Attempt[]) => void
  readonly #isGathering: () => boolean
  #waiting: Attempt[] = []
  #cancel: Cancel | null = null

  /** `isGathering` returns true while the tasks wait for others of their batch, and not for a slot. */
  constructor(
    clock: Clock,
    starts: RecentRate,
    release: (attempts: readonly Attempt[]) => void,
    isGathering: () => boolean = () => false,
  ) {
    this.#clock = clock
    this.#starts = starts
    this.#release = release
    this.#isGathering = isGathering
  }

  get first(): Attempt | undefined {
    return this.#waiting[0]
  }

  get length(): number {
    return this.#waiting.length
  }

  groupsOf(queue: string): readonly string[] {
    return this.#waiting.flatMap(({ record }) => (record.queue === queue ? (record.group ?? []) : []))
  }

  countOf(queue: string): number {
    let count = 0
    for (const { record } of this.#waiting) if (record.queue === queue) count++
    return count
  }

  add(attempts: readonly Attempt[]): void {
    for (const attempt of attempts) this.#waiting.push(attempt)
  }

  take(most: number): Attempt[] {
    return this.#waiting.splice(0, most)
  }

  /** Releases the tasks for which `isUnwanted` returns true. Default: all. */
  releaseAll(isUnwanted: (attempt: Attempt) => boolean = () => true): void {
    const released = this.#waiting.filter(isUnwanted)
    this.#waiting = this.#waiting.filter((attempt) => !isUnwanted(attempt))
    this.#release(released)
  }

  /** Every second while any wait, releases all but as many as were started in the last second. */
  releaseSurplusLater(): void {
    if (this.#cancel !== null || this.#waiting.length === 0) return
    this.#cancel = this.#clock.after(A_SECOND, () => {
      this.#cancel = null
      const surplus = this.#isGathering() ? 0 : this.#waiting.length - this.#starts.within(A_SECOND)
      if (surplus > 0) this.#release(this.#waiting.splice(-surplus))
      this.releaseSurplusLater()
    })
  }

  close(): void {
    this.#cancel?.()
  }
}
