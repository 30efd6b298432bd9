/** Waits for the signal that ends a command. */

/**
 * Resolves at the first SIGINT or SIGTERM. Call it before the line that says the command is ready: a supervisor may
 * signal as soon as it has read that line, and without a listener the signal would kill the process.
 */
export const stopSignal = (): Promise<void> =>
  new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve())
  })
