/** The signals by which a process is asked to stop. */

const SIGNALS = ['SIGTERM', 'SIGINT'] as const

/** Calls `asked` for each signal while `work` is under way. */
export const onSignals = async (asked: () => void, work: () => Promise<void>): Promise<void> => {
  for (const signal of SIGNALS) process.on(signal, asked)
  try {
    await work()
  } finally {
    for (const signal of SIGNALS) process.off(signal, asked)
  }
}
