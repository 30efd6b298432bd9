/** Formats a schedule for a terminal. */
import { formatDuration, type Instant, type Schedule } from '../../index.ts'
import { instant, relative } from './render.ts'

/** `30 2 * * * Europe/Berlin`, `every 5m`, `5m after the end of the last run`. */
export const plan = ({ cron, timezone, every, mode }: Schedule): string => {
  if (cron !== null) return `${cron} ${timezone}`
  const interval = formatDuration(every!)
  return mode === 'fixed-delay' ? `${interval} after the end of the last run` : `every ${interval}`
}

export const when = (at: Instant, now: Instant): string => `${instant(at)} (${relative(at, now)})`

export const nextText = ({ paused, nextAt }: Schedule, now: Instant): string => {
  if (paused) return 'paused'
  return nextAt === null ? 'when the last run has ended' : when(nextAt, now)
}
