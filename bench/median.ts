/** The median: a single disturbed run does not change it. */
export const medianOf = (values: readonly number[]): number => {
  const sorted = [...values].sort((a, b) => a - b)
  const half = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[half]! : (sorted[half - 1]! + sorted[half]!) / 2
}

/** Of the ratios of single runs, in which both sides had nearly the same minute. */
export const medianRatio = (ours: readonly number[], theirs: readonly number[]): number =>
  medianOf(ours.slice(0, theirs.length).map((value, run) => value / theirs[run]!))

/** `share` from 0 to 1 of the samples are no longer than this; 1: the longest. */
export const percentileOf = (samples: readonly number[], share: number): number => {
  const sorted = [...samples].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]!
}
