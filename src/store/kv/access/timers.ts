/** Time for the engine. Tests pass their own. */
export interface Timers {
  /** Monotonic milliseconds. */
  mono(): number
  /** Calls `tick` once. Returns a function that cancels. */
  after(delay: number, tick: () => void): () => void
}

/** A pending tick does not keep the process alive. */
export const systemTimers: Timers = {
  mono: () => performance.now(),
  after: (delay, tick) => {
    const timer = setTimeout(tick, delay)
    timer.unref()
    return () => clearTimeout(timer)
  },
}
