/** The instants that a record may hold, and their format for people. */

import type { Instant } from '../task.ts'
import { formatDuration } from './durations.ts'

/** The years 1 to 9999: every store keeps them, and every language reads them in ISO 8601. */
const FIRST_INSTANT: Instant = -62_135_596_800_000
export const LAST_INSTANT: Instant = 253_402_300_799_999

export const isInstant = (value: unknown): value is Instant =>
  Number.isInteger(value) && (value as number) >= FIRST_INSTANT && (value as number) <= LAST_INSTANT

/** A sum of instants and durations may pass the end of the calendar; the record then holds the end. */
export const atMostLast = (at: Instant): Instant => Math.min(at, LAST_INSTANT)

/** ISO 8601 in UTC; milliseconds are left out when they are zero. */
export const formatInstant = (at: Instant): string => new Date(at).toISOString().replace('.000Z', 'Z')

/** `in 2h 30m`, `5s ago`, `now`. Rounded to seconds from one second on, so that a delay of 1h reads as 1h. */
export const formatRelative = (at: Instant, now: Instant): string => {
  const away = Math.abs(at - now)
  if (away === 0) return 'now'
  const text = formatDuration(away < 1_000 ? away : Math.round(away / 1_000) * 1_000)
  return at > now ? `in ${text}` : `${text} ago`
}
