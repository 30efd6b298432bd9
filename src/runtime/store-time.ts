/** The store's time as this process knows it: an anchor, carried on by the monotonic clock. */
import { isHoldfastError } from '../core/errors.ts'
import { isCredible } from '../core/host-clock.ts'
import type { Instant } from '../core/task.ts'
import type { Store } from '../store/store.ts'
import type { Clock } from './clock.ts'

/** How long an anchor is used where the store's clock is another machine's. */
const ANCHOR_LIFE = 30_000
/** The two clocks of the host have parted by this much: it slept, or was set. Elapsed time is no witness then. */
const HOST_JUMP = 1_000

/** An answer that took longer leaves much uncertain: it is asked for again, a few times. */
const SLOW = 100
const MOST_SAMPLES = 4

export class StoreTime {
  readonly #store: Store
  readonly #clock: Clock
  readonly #isHost: boolean
  #at: Instant = 0
  #mono = 0
  #wall = 0
  #uncertainty = 0
  #anchoring: Promise<void> | null = null

  constructor(store: Store, clock: Clock) {
    this.#store = store
    this.#clock = clock
    this.#isHost = store.capabilities.has('host-clock')
  }

  get uncertainty(): number {
    return this.#uncertainty
  }

  /** Asks for the store's time. Callers that ask at once share the answer. */
  anchor(): Promise<void> {
    this.#anchoring ??= this.#anchor().finally(() => {
      this.#anchoring = null
    })
    return this.#anchoring
  }

  /** Anchors again if the estimate has grown old. Without contact the old one has to do: the call that follows finds out. */
  async freshen(): Promise<void> {
    if (!this.isOld) return
    try {
      await this.anchor()
    } catch (error) {
      if (!isHoldfastError(error)) throw error
    }
  }

  /** The answer that came soonest is the most certain one. The first may have waited for a connection to be made. */
  async #anchor(): Promise<void> {
    let best = await this.#sample()
    for (let samples = 1; best.took > SLOW && samples < MOST_SAMPLES && !this.#isHost; samples++) {
      const next = await this.#sample()
      if (next.took < best.took) best = next
    }
    const { at, uncertainty, asked, took } = best
    this.#uncertainty = this.#isHost ? 0 : uncertainty + took
    this.#set(at, this.#isHost ? asked + took : asked)
  }

  async #sample(): Promise<{ at: Instant; uncertainty: number; asked: number; took: number }> {
    const asked = this.#clock.mono()
    const { at, uncertainty } = await this.#store.now()
    return { at, uncertainty, asked, took: this.#clock.mono() - asked }
  }

  /** The early end of what the store's clock may show: a task stamped with it is never in the store's future. */
  now(): Instant {
    const carried = Math.floor(this.#at + (this.#clock.mono() - this.#mono))
    if (!this.#isHost) return carried - Math.ceil(this.#uncertainty)
    const wall = this.#clock.wall()
    if (wall < carried && isCredible(carried, wall)) return carried
    this.#set(wall, this.#clock.mono())
    return wall
  }

  /** True when the estimate has grown old. */
  get isOld(): boolean {
    if (this.#isHost) return false
    const elapsed = this.#clock.mono() - this.#mono
    return elapsed > ANCHOR_LIFE || Math.abs(this.#clock.wall() - this.#wall - elapsed) > HOST_JUMP
  }

  #set(at: Instant, mono: number): void {
    this.#at = at
    this.#mono = mono
    this.#wall = this.#clock.wall() - (this.#clock.mono() - mono)
  }
}
