/** A different system starts each time, so that none always has the quieter or the warmer machine. */
export const turns = <T>(all: readonly T[], run: number): T[] => {
  const first = run % Math.max(1, all.length)
  return [...all.slice(first), ...all.slice(0, first)]
}
