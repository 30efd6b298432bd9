/** How long to wait before a call is tried again, so that processes which failed together do not try together. */

/** In milliseconds: the limit of the wait before the first repeat, and the limit that no wait exceeds. */
export interface Waits {
  readonly first: number
  readonly longest: number
}

/** Full jitter: a random part of a limit that doubles with each try. */
export const fullJitter = ({ first, longest }: Waits, tries: number, random: number): number =>
  random * Math.min(first * 2 ** tries, longest)
