/** The signals that ask a process to stop. */

const SIGNALS = ['SIGTERM', 'SIGINT'] as const

/** Calls `asked` for each signal until `work` has finished. */
export const onSignals = async (asked: () => void, work: () => Promise<void>): Promise<void> => {
  for (const signal of SIGNALS) process.on(signal, asked)
  try {
    await work()
  } finally {
    for (const signal of SIGNALS) process.off(signal, asked)
  }
}
