/** Reads the wake object while the process has listeners: often while there is work, rarely when there is none. */
import type { Timers } from '../access/timers.ts'

const SHORTEST = 100
/** So that a pause is seen within 5 s. */
const LONGEST = 3_000
const GROWTH = 1.5
/** A process that has just written writes again 200 ms later at the earliest. */
const AFTER_CHANGE = 100
/** How long reads stay frequent after a change or a claim. */
const BUSY = 3_000
/** After this long without a successful read, nothing is known. */
const LIFE = 10_000

export class WakeFollower {
  /** Whether it has changed. */
  readonly #read: () => Promise<boolean>
  readonly #timers: Timers
  #isOn = false
  #interval = SHORTEST
  readonly #slack: () => number
  #busyAt = Number.NEGATIVE_INFINITY
  #readAt = Number.NEGATIVE_INFINITY
  #cancel: (() => void) | null = null
  #reading = false

  /** `slack`: how much longer the interval may be, because other processes are faster anyway. */
  constructor(read: () => Promise<boolean>, timers: Timers, slack: () => number) {
    this.#slack = slack
    this.#read = read
    this.#timers = timers
  }

  start(): void {
    this.#isOn = true
    this.#tick()
  }

  stop(): void {
    this.#isOn = false
    this.#cancel?.()
  }

  /** This process knows everything that was announced until a moment ago. */
  get isCurrent(): boolean {
    return this.#isOn && this.#timers.mono() - this.#readAt < LIFE
  }

  get isIdle(): boolean {
    return this.#timers.mono() - this.#busyAt > 20 * BUSY
  }

  /** There is work: read often. */
  busy(): void {
    this.#busyAt = this.#timers.mono()
    const pace = SHORTEST + this.#slack()
    const isSlow = this.#interval > pace
    this.#interval = pace
    if (isSlow && this.#isOn && !this.#reading) this.#again()
  }

  #again(rest = 0): void {
    this.#cancel?.()
    this.#cancel = this.#timers.after(this.#interval + rest, () => this.#tick())
  }

  #tick(): void {
    if (this.#reading) return
    this.#reading = true
    let rest = 0
    const begun = this.#timers.mono()
    if (begun - this.#busyAt > BUSY) this.#interval = Math.min(LONGEST, this.#interval * GROWTH)
    this.#read()
      .then(
        (hasChanged) => {
          this.#readAt = begun
          rest = hasChanged ? AFTER_CHANGE : 0
        },
        () => {
          this.#readAt = Number.NEGATIVE_INFINITY
          this.#interval = Math.min(LONGEST, this.#interval * GROWTH)
        },
      )
      .finally(() => {
        this.#reading = false
        if (this.#isOn) this.#again(rest)
      })
  }
}
