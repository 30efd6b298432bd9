/**
 * The host's time for one SQLite file. It does not follow a step back of less than ten minutes, neither while the file is open nor
 * behind what an earlier process wrote. It follows a larger step, because then the time before it was wrong (decision 20).
 */
import { isCredible } from '../../../core/host/host-clock.ts'

const { hrtime } = process

/** Monotonic milliseconds, the same for all threads of the process. */
export const mono = (): number => Number(hrtime.bigint()) / 1e6

export class HostClock {
  readonly #host: () => number
  #wall = 0
  #mono = 0

  /** `highWater` is the latest instant known to have been used on this file. */
  constructor(highWater: number, host: () => number = Date.now) {
    this.#host = host
    this.#anchor(storeTime(highWater, host()))
  }

  now(): number {
    const wall = this.#host()
    // After a step back, time continues from the last reading by the monotonic clock, so that leases still lapse.
    const carried = Math.floor(this.#wall + (mono() - this.#mono))
    if (wall < this.#wall && isCredible(carried, wall)) return carried
    this.#anchor(wall)
    return wall
  }

  #anchor(wall: number): void {
    this.#wall = wall
    this.#mono = mono()
  }
}

/** Never behind an instant that was used on this file, unless that came from a wrong clock. */
export const storeTime = (highWater: number, host: number): number =>
  isCredible(highWater, host) ? Math.max(host, highWater) : host
