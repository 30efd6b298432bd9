/** How many tasks to ask for: one per free slot at the least; more only as fast as tasks have been started lately. */

/** Tasks in one claim. */
const LARGEST_CLAIM = 1_000
/** Fetch ahead what would be started in this many milliseconds: modest, so that other workers find work too. */
export const AHEAD = 250
export const MOST_AHEAD = 2_000

export interface Load {
  /** Free slots. */
  readonly free: number
  /** Held, not started. */
  readonly held: number
  /** What looks under way may bring. */
  readonly asked: number
  /** Started in the last `AHEAD` milliseconds. */
  readonly started: number
  /** How many more leases can be kept. */
  readonly room: number
}

export const claimSize = ({ free, held, asked, started, room }: Load): number => {
  const ahead = Math.min(started, MOST_AHEAD)
  // Half-way, so that claims come in batches and not one by one; a second beside the first only when little is left,
  // because it passes what that one has locked.
  if (held + asked >= free && held + asked / 2 > ahead / 2) return 0
  return Math.min(Math.max(free, ahead) - held - asked, LARGEST_CLAIM, room - asked)
}
