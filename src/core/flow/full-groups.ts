/** Runs of full groups that follow each other: a later claim may jump over a run instead of looking at each of its groups. */

/** Shorter runs are not worth remembering. */
const SHORTEST_RUN = 16

/**
 * `full` are the full groups that a claim met which began behind `after`; `taken` are those of which it leased tasks. A run contains no
 * group that was leased from, and does not reach over the place where the claim began: what lies there was not looked at.
 */
export const runsOf = (
  full: readonly string[],
  taken: readonly string[],
  after: string | null,
): readonly (readonly string[])[] => {
  const isTaken = new Set(taken)
  const runs: string[][] = []
  for (const isBehind of [true, false]) {
    const isHere = (group: string): boolean => (after === null || group > after) === isBehind
    let run: string[] = []
    runs.push(run)
    for (const group of [...new Set([...full, ...taken])].filter(isHere).sort()) {
      if (isTaken.has(group)) {
        run = []
        runs.push(run)
      } else run.push(group)
    }
  }
  return runs.filter((run) => run.length >= SHORTEST_RUN)
}
