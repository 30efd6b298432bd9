/** Formats numbers, times and moves. */
import type { Entry, View } from './types.ts'

const counting = new Intl.NumberFormat('en')

export const number = (value: number): string => counting.format(value)

/** 12,345 as 12.3k, for small spaces. */
export const short = (value: number): string => {
  if (value < 10_000) return number(value)
  const [by, unit] = value < 1_000_000 ? [1_000, 'k'] : [1_000_000, 'M']
  const scaled = value / by
  return `${scaled < 100 ? scaled.toFixed(1).replace(/\.0$/, '') : Math.round(scaled)}${unit}`
}

export const plural = (count: number, one: string, many = `${one}s`): string =>
  `${number(count)} ${count === 1 ? one : many}`

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

export const duration = (ms: number): string => {
  if (ms < SECOND) return `${Math.round(ms)} ms`
  if (ms < 10 * SECOND) return `${(ms / SECOND).toFixed(1).replace(/\.0$/, '')} s`
  if (ms < MINUTE) return `${Math.floor(ms / SECOND)} s`
  if (ms < HOUR) return pair(ms, MINUTE, 'm', SECOND, 's')
  if (ms < DAY) return pair(ms, HOUR, 'h', MINUTE, 'm')
  return pair(ms, DAY, 'd', HOUR, 'h')
}

const pair = (ms: number, large: number, one: string, small: number, two: string): string => {
  const rest = Math.floor((ms % large) / small)
  return `${Math.floor(ms / large)} ${one}${rest === 0 ? '' : ` ${rest} ${two}`}`
}

/** 'in 5 m', '12 s ago', 'now'. */
export const relative = (at: number, now: number): string => {
  const away = Math.abs(at - now)
  if (away < SECOND) return 'now'
  const length = duration(away < MINUTE ? Math.floor(away / SECOND) * SECOND : away)
  return at > now ? `in ${length}` : `${length} ago`
}

const clock = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' })
const day = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short' })

export const timeOfDay = (at: number): string => clock.format(at)

export const dayOf = (at: number): string => day.format(at)

/** Only the time if it is today. */
export const moment = (at: number, now: number): string =>
  new Date(at).toDateString() === new Date(now).toDateString() ? timeOfDay(at) : `${dayOf(at)}, ${timeOfDay(at)}`

const toTheMinute = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' })

/** A list of slots: the day is shown where it changes, seconds only if they are not zero. */
export const slotTimes = (slots: readonly string[], now: number): readonly string[] =>
  slots.map((slot, i) => {
    const at = Date.parse(slot)
    const before = dayOf(i === 0 ? now : Date.parse(slots[i - 1]!))
    const time = (at % MINUTE === 0 ? toTheMinute : clock).format(at)
    return dayOf(at) === before ? time : `${dayOf(at)} ${time}`
  })

/** A failed task is shown as dead, like the view and the page. */
export const VIEW_WORDS: Readonly<Record<View, string>> = {
  pending: 'pending',
  ready: 'ready',
  scheduled: 'scheduled',
  retrying: 'retrying',
  running: 'running',
  completed: 'completed',
  failed: 'dead',
  dead: 'dead',
  cancelled: 'cancelled',
  expired: 'expired',
  archived: 'archived',
}

const HAPPENED: Readonly<Record<string, (entry: Entry) => string>> = {
  submit: () => 'Submitted',
  claim: () => 'Claimed',
  complete: () => 'Completed',
  fail: ({ to }) => (to === 'pending' ? 'Failed, will retry' : to === 'failed' ? 'Failed permanently' : STOPPED),
  'lose-lease': ({ to }) =>
    to === 'pending' ? 'Lease lost, will retry' : to === 'failed' ? 'Lease lost, failed' : STOPPED,
  'time-out': ({ to }) =>
    to === 'pending' ? 'Timed out, will retry' : to === 'failed' ? 'Timed out, failed' : STOPPED,
  reschedule: ({ to }) => (to === 'pending' ? 'Rescheduled' : to === 'failed' ? 'Too many reschedules' : STOPPED),
  release: ({ to }) => (to === 'pending' ? 'Released' : STOPPED),
  expire: () => 'Expired',
  amend: ({ changed = [] }) => `Changed: ${changed.join(', ')}`,
  cancel: () => 'Cancelled',
  'request-cancel': () => 'Asked to stop',
  retry: ({ to }) => (to === 'pending' ? 'Retried by operator' : 'Retried by operator, none left'),
  replay: () => 'Replayed',
  archive: () => 'Archived',
  unarchive: () => 'Unarchived',
  depart: () => 'Moved to another store',
}

const STOPPED = 'Stopped as requested'

export const happened = (entry: Entry): string =>
  Object.hasOwn(HAPPENED, entry.move) ? HAPPENED[entry.move]!(entry) : entry.move
