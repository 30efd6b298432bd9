/** The store's time as this process knows it: an anchor, carried on by the monotonic clock. */
import type { Instant } from '../core/task.ts'
import type { Store } from '../store/store.ts'
import type { Clock } from './clock.ts'

/** Where the store's clock is another machine's, the anchor is taken anew this often. */
const ANCHOR_LIFE = 30_000

export class StoreTime {
  readonly #store: Store
  readonly #clock: Clock
  readonly #isHost: boolean
  #at: Instant = 0
  #mono = 0
  #uncertainty = 0

  constructor(store: Store, clock: Clock) {
    this.#store = store
    this.#clock = clock
    this.#isHost = store.capabilities.has('host-clock')
  }

  get uncertainty(): number {
    return this.#uncertainty
  }

  async anchor(): Promise<void> {
    const before = this.#clock.mono()
    const { at, uncertainty } = await this.#store.now()
    const after = this.#clock.mono()
    this.#uncertainty = this.#isHost ? 0 : uncertainty + (after - before)
    this.#set(at, this.#isHost ? after : before)
  }

  /** The early end of what the store's clock may show: a task stamped with it is never in the store's future. */
  now(): Instant {
    const carried = Math.floor(this.#at + (this.#clock.mono() - this.#mono))
    if (!this.#isHost) return carried - Math.ceil(this.#uncertainty)
    const wall = this.#clock.wall()
    if (wall < carried) return carried
    this.#set(wall, this.#clock.mono())
    return wall
  }

  /** True when the estimate has grown old. */
  get isOld(): boolean {
    return !this.#isHost && this.#clock.mono() - this.#mono > ANCHOR_LIFE
  }

  #set(at: Instant, mono: number): void {
    this.#at = at
    this.#mono = mono
  }
}
