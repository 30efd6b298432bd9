/** The only file of the runtime that reads a clock, sets a timer or rolls dice. Everything else is given these. */
import { hrtime } from 'node:process'
import type { Instant } from '../core/task.ts'

export type Cancel = () => void

export interface Clock {
  /** The host's idea of now. */
  wall(): Instant
  /** Milliseconds that only go forward, the same for all threads of the process. */
  mono(): number
  /** Calls `tick` once after `delay` milliseconds. */
  after(delay: number, tick: () => void): Cancel
}

/** A number in [0, 1). */
export type Random = () => number

/** Node's own, taken when this file is loaded: the fake timers of a test runner (`vi.useFakeTimers()`) do not stop a worker. */
const { setTimeout, clearTimeout, setImmediate } = globalThis

/** Calls `work` when the event loop has told what it has by now. */
export const soon = (work: () => void): void => void setImmediate(work)

/** setTimeout counts in 31 bits. Longer waits are cut, and the caller checks the time again. */
const LONGEST_TIMER = 2_000_000_000

export const systemClock: Clock = {
  wall: Date.now,
  mono: () => Number(hrtime.bigint()) / 1e6,
  after(delay, tick) {
    const timer = setTimeout(tick, Math.min(Math.max(0, delay), LONGEST_TIMER))
    return () => clearTimeout(timer)
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
