/** The only file of the runtime that reads a clock, sets a timer or draws random numbers. Other files receive these as arguments. */
import type { Instant } from '../core/task.ts'

export type Cancel = () => void

export interface Clock {
  /** The host's wall clock. */
  wall(): Instant
  /** Monotonic milliseconds, the same for all threads of the process. */
  mono(): number
  /** Calls `tick` once after `delay` milliseconds. A background timer does not keep the process alive. */
  after(delay: number, tick: () => void, isBackground?: boolean): Cancel
  /** Milliseconds of processor time that this process has used. A process that is suspended uses none. */
  processorTime?(): number
}

/** A number in [0, 1). */
export type Random = () => number

/** Node's timers and clocks, captured when this file is loaded, so that fake timers of a test runner (`vi.useFakeTimers()`) do not stop a worker. */
const { setTimeout, clearTimeout, setImmediate } = globalThis
/** Not imported from node:process: that opens the standard streams, and loads Node's network code for them. */
const { cpuUsage, hrtime } = process

/** Calls `work` after the event loop has delivered the I/O that is ready now. */
export const soon = (work: () => void): void => void setImmediate(work)

/** setTimeout is limited to 31 bits. A longer wait ends early, and the caller checks the time again. */
const LONGEST_TIMER = 2_000_000_000

export const systemClock: Clock = {
  wall: Date.now,
  mono: () => Number(hrtime.bigint()) / 1e6,
  after(delay, tick, isBackground = false) {
    const timer = setTimeout(tick, Math.min(Math.max(0, delay), LONGEST_TIMER))
    if (isBackground) timer.unref()
    return () => clearTimeout(timer)
  },
  processorTime() {
    const { user, system } = cpuUsage()
    return (user + system) / 1_000
  },
}

export const systemRandom: Random = Math.random

/** Resolves after `delay`, or at once when `signal` aborts. */
export const pause = (clock: Clock, delay: number, signal?: AbortSignal): Promise<void> =>
  new Promise((done) => {
    if (signal?.aborted) return done()
    const cancel = clock.after(delay, () => {
      signal?.removeEventListener('abort', stop)
      done()
    })
    const stop = (): void => {
      cancel()
      done()
    }
    signal?.addEventListener('abort', stop, { once: true })
  })
