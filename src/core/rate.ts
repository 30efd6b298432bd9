/** A rate limits the starts in any window of time: which permits it gives at an instant (GCRA), and how long they are valid. */
import { parseDuration } from './durations.ts'
import { HoldfastError } from './errors.ts'
import type { Instant } from './task.ts'

export interface Rate {
  readonly count: number
  /** In milliseconds. */
  readonly per: number
}

const SHORTEST = 1_000
const LONGEST = 86_400_000

/** `'60/1m'` */
export const parseRate = (text: string, field: string): Rate => {
  const [, digits, duration] = (typeof text === 'string' && /^\s*(\d{1,7})\s*\/\s*(\S.*)$/.exec(text)) || []
  if (digits === undefined || duration === undefined)
    throw refused(field, `'${String(text).slice(0, 40)}' must be a count and a duration, such as '60/1m'`)
  // '10/s' is how people say it.
  const per = parseDuration(/^[a-z]+$/i.test(duration) ? `1${duration}` : duration, field)
  const count = Number(digits)
  if (count < 1) throw refused(field, 'must permit at least 1: pause the queue to stop it')
  if (per < SHORTEST || per > LONGEST) throw refused(field, 'must be over a time of 1 second to 1 day')
  return { count, per }
}

export const startsPerSecond = (text: string): number => {
  const { count, per } = parseRate(text, 'rate')
  return (count * 1_000) / per
}

/**
 * A claim takes time, so a permit for one instant is valid for a while after it. Permits are spaced so that a window has no more than
 * `count` of them even if the first is used as late, and the last as early, as can be.
 */
export const validityOf = ({ per }: Rate, leaseTtl: number): number =>
  Math.min(1_000, Math.max(per / 50, leaseTtl / 100))

export interface RateInForce {
  readonly rate: Rate
  readonly burst: number
  /** As `validityOf` says. */
  readonly validity: number
}

export interface Reservation {
  readonly permits: number
  /** What the document keeps: the instant of the first permit that is not reserved. */
  readonly free: Instant
  /** No claim may use these permits after this instant. */
  readonly notAfter: Instant
  /** When there will be another permit. */
  readonly next: Instant
}

/** Reserves up to `wanted` permits at `now`. `free` is the instant of the first permit that was not reserved before; null: none was. */
export const reserve = (
  free: Instant | null,
  now: Instant,
  wanted: number,
  { rate, burst, validity }: RateInForce,
): Reservation => {
  const spacing = spacingOf({ rate, validity })
  // Permits of the last half of the validity can still be used; older ones are void.
  const from = Math.max(free ?? Number.NEGATIVE_INFINITY, now - validity / 2)
  const available = Math.floor((now - from) / spacing + burst + ROUNDING)
  const permits = Math.max(0, Math.min(wanted, available))
  const after = permits === 0 ? (free ?? from) : from + permits * spacing
  return { permits, free: after, notAfter: now + validity / 2, next: Math.ceil(after - (burst - 1) * spacing) }
}

/** What the document keeps when `unused` permits of a reservation are given back. */
export const giveBack = (free: Instant, unused: number, inForce: RateInForce): Instant =>
  free - unused * spacingOf(inForce)

const spacingOf = ({ rate, validity }: Pick<RateInForce, 'rate' | 'validity'>): number =>
  (rate.per + validity) / rate.count

/** Sums of fractions may fall short of a whole permit by this much. */
const ROUNDING = 1e-6

const refused = (field: string, why: string): HoldfastError =>
  new HoldfastError('INVALID_OPTION', `${field} ${why}`, { field })
