/** How many tasks to claim: at least one per free slot, and more in proportion to the rate of recent starts. */

/** The most tasks in one claim. */
const LARGEST_CLAIM = 1_000
/** Prefetch what will be started in this many milliseconds. Kept small, so that other workers find work too. */
export const AHEAD = 250
export const MOST_AHEAD = 2_000

export interface Load {
  /** Free slots. */
  readonly free: number
  /** Claimed and not started. */
  readonly held: number
  /** The most tasks that claims in flight may return. */
  readonly asked: number
  /** Started in the last `AHEAD` milliseconds. */
  readonly started: number
  /** How many more leases can be kept. */
  readonly room: number
}

export const claimSize = ({ free, held, asked, started, room }: Load): number => {
  const ahead = Math.min(started, MOST_AHEAD)
  // Claim again when half is used, so that claims come in batches. A second claim beside the first starts only when little is
  // left, because it has to skip the rows that the first one has locked.
  if (held + asked >= free && held + asked / 2 > ahead / 2) return 0
  return Math.min(Math.max(free, ahead) - held - asked, LARGEST_CLAIM, room - asked)
}
