/** From submit to start, of the tasks that this process has started since it was asked last. */
const MOST_KEPT = 100_000
let kept: number[] = []

export const started = (submittedAt: number): void => {
  if (kept.length < MOST_KEPT) kept.push(Math.max(0, Date.now() - submittedAt))
}

export const latencies = (): readonly number[] => {
  const taken = kept
  kept = []
  return taken
}
