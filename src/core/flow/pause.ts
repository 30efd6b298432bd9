/** The pause of a queue: when it holds, and which of two stands. */
import type { Instant } from '../task.ts'

/** The value of a pause's document. */
export interface Pause {
  readonly at: string
  readonly by: string
  readonly reason?: string
  /** It ends by itself at this instant, in ISO 8601. Left out: it must be resumed. */
  readonly until?: string
  /** Held by a move into this store, until that is finished; then the pause ends, unless it was also wanted for itself. */
  readonly move?: { readonly id: string; readonly from: string; readonly keep: boolean }
}

export const readPause = (value: string): Pause => {
  try {
    return JSON.parse(value) as Pause
  } catch {
    return { at: '', by: '' }
  }
}

/** null: it must be resumed. */
export const endOf = ({ until, move }: Pause): Instant | null =>
  until === undefined || move !== undefined ? null : Date.parse(until)

export const isInForce = (pause: Pause, now: Instant): boolean => {
  const end = endOf(pause)
  return end === null || end > now
}

/** A pause without an end takes precedence over one with an end; of two with an end, the later one applies. A pause that is over is ignored. */
export const strongerPause = (before: Pause | null, wanted: Pause, now: Instant): Pause => {
  if (before === null || !isInForce(before, now)) return wanted
  if (before.move !== undefined) {
    if (before.move.keep && outranks(before, wanted)) return before
    return { ...wanted, at: before.at, move: { ...before.move, keep: true } }
  }
  return outranks(before, wanted) ? before : wanted
}

const outranks = (before: Pause, wanted: Pause): boolean =>
  before.until === undefined || (wanted.until !== undefined && Date.parse(before.until) >= Date.parse(wanted.until))
