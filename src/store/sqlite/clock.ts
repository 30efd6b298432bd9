/** The host's time for one SQLite file: never goes back while open, nor behind what an earlier process wrote. */
import { hrtime } from 'node:process'

/** Monotonic milliseconds, the same for all threads of the process. */
export const mono = (): number => Number(hrtime.bigint()) / 1e6

export class HostClock {
  #wall = 0
  #mono = 0

  /** `highWater`: the latest instant known to have been used on this file. */
  constructor(highWater: number) {
    this.#anchor(Math.max(Date.now(), highWater))
  }

  now(): number {
    const wall = Date.now()
    // After a step back the monotonic clock carries on from the last reading, so that leases still lapse.
    const carried = Math.floor(this.#wall + (mono() - this.#mono))
    const now = Math.max(wall, this.#wall, wall < this.#wall ? carried : 0)
    if (wall >= this.#wall) this.#anchor(wall)
    return now
  }

  #anchor(wall: number): void {
    this.#wall = wall
    this.#mono = mono()
  }
}
