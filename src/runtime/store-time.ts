/** An estimate of the store's time: the last reading (the anchor) plus the elapsed monotonic time. */
import { isHoldfastError } from '../core/errors.ts'
import { isCredible } from '../core/host/host-clock.ts'
import type { Instant } from '../core/task.ts'
import type { Store } from '../store/store.ts'
import type { Clock } from './clock.ts'

/** How long an anchor is used when the store runs on another machine. */
const ANCHOR_LIFE = 30_000
/** When the host's two clocks disagree by this much, the host slept or its clock was set, and elapsed time proves nothing. */
const HOST_JUMP = 1_000

/** One reply may get lost. Where none comes within this time, the call that follows finds it out as well. */
const MOST_TRIES = 3
const PATIENCE = 1_000

/** A slower reply is too uncertain: the reading is repeated a few times. */
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

  /** Reads the store's time. Concurrent callers share one reading. */
  anchor(): Promise<void> {
    this.#anchoring ??= this.#anchor().finally(() => {
      this.#anchoring = null
    })
    return this.#anchoring
  }

  /** Anchors again if the estimate is old. Without contact it keeps the old one: the call that follows reports the error. */
  async freshen(): Promise<void> {
    const begun = this.#clock.mono()
    for (let tries = 0; tries < MOST_TRIES && this.isOld && this.#clock.mono() - begun < PATIENCE; tries++) {
      try {
        await this.anchor()
      } catch (error) {
        if (!isHoldfastError(error)) throw error
      }
    }
  }

  /** Uses the fastest reply, which is the most certain. The first one may have waited for a connection. */
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

  /** The lower bound of the store's time, so that a task stamped with it is never in the store's future. */
  now(): Instant {
    const carried = Math.floor(this.#at + (this.#clock.mono() - this.#mono))
    if (!this.#isHost) return carried - Math.ceil(this.#uncertainty)
    const wall = this.#clock.wall()
    if (wall < carried && isCredible(carried, wall)) return carried
    this.#set(wall, this.#clock.mono())
    return wall
  }

  /** True when the estimate should be read again. */
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
