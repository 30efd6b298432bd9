/** Instants as people read them. */
import { formatDuration } from './durations.ts'
import type { Instant } from './task.ts'

/** ISO 8601 in UTC; milliseconds are left out when they are zero. */
export const formatInstant = (at: Instant): string => new Date(at).toISOString().replace('.000Z', 'Z')

/** `in 2h 30m`, `5s ago`, `now`. To the second from one second on, so that what was asked for as 1h reads as 1h. */
export const formatRelative = (at: Instant, now: Instant): string => {
  const away = Math.abs(at - now)
  if (away === 0) return 'now'
  const text = formatDuration(away < 1_000 ? away : Math.round(away / 1_000) * 1_000)
  return at > now ? `in ${text}` : `${text} ago`
}
