/** Formats numbers, times and moves. */
import type { Entry, View } from '../types.ts'
import { inZone, zoned } from './zone.ts'

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

const UNITS: readonly (readonly [length: number, name: string])[] = [
  [DAY, 'd'],
  [HOUR, 'h'],
  [MINUTE, 'm'],
  [SECOND, 's'],
  [1, 'ms'],
]

/** Exact, and as the API takes it: '1h30m'. */
export const exactDuration = (ms: number): string => {
  let left = ms
  const parts = UNITS.map(([length, name]) => {
    const count = Math.floor(left / length)
    left -= count * length
    return count === 0 ? '' : `${count}${name}`
  })
  return parts.join('') || '0s'
}

/** 'in 5 m', '12 s ago', 'now'. */
export const relative = (at: number, now: number): string => {
  const away = Math.abs(at - now)
  if (away < SECOND) return 'now'
  const length = duration(away < MINUTE ? Math.floor(away / SECOND) * SECOND : away)
  return at > now ? `in ${length}` : `${length} ago`
}

const TO_SECOND = { hour: '2-digit', minute: '2-digit', second: '2-digit' } as const
const TO_MINUTE = { hour: '2-digit', minute: '2-digit' } as const
const DATE = { day: 'numeric', month: 'short' } as const
const clock = zoned(TO_SECOND)
const day = zoned(DATE)

export const timeOfDay = (at: number): string => clock.format(at)

export const dayOf = (at: number): string => day.format(at)

/** Only the time if it is today. */
export const moment = (at: number, now: number): string =>
  dayOf(at) === dayOf(now) ? timeOfDay(at) : `${dayOf(at)}, ${timeOfDay(at)}`

const toTheMinute = zoned(TO_MINUTE)

/** For an axis: days only where the range has several. `range` is in seconds. */
export const axisTime = (at: number, range: number): string => {
  const isMidnight = toTheMinute.format(at) === '00:00'
  if (range > 2 * (DAY / SECOND)) return dayOf(at)
  return isMidnight ? dayOf(at) : toTheMinute.format(at)
}

/** The slot under the crosshair. */
export const atCrosshair = (at: number, step: number): string =>
  step < MINUTE ? timeOfDay(at) : `${dayOf(at)}, ${toTheMinute.format(at)} to ${toTheMinute.format(at + step)}`

/** Per second, with as many digits as help. */
export const rate = (value: number): string => {
  if (value >= 10 || value === 0) return short(Math.round(value))
  return value.toFixed(value >= 1 ? 1 : 2).replace(/\.?0+$/, '')
}

/** A list of slots: the day is shown where it changes, seconds only if they are not zero. null: in the zone that is chosen for the page. */
export const slotTimes = (slots: readonly string[], now: number, zone: string | null): readonly string[] => {
  const dates = zone === null ? day : inZone(DATE, zone)
  const toMinute = zone === null ? toTheMinute : inZone(TO_MINUTE, zone)
  const toSecond = zone === null ? clock : inZone(TO_SECOND, zone)
  return slots.map((slot, i) => {
    const at = Date.parse(slot)
    const before = dates.format(i === 0 ? now : Date.parse(slots[i - 1]!))
    const time = (at % MINUTE === 0 ? toMinute : toSecond).format(at)
    return dates.format(at) === before ? time : `${dates.format(at)} ${time}`
  })
}

/** A failed task is shown as dead, like the view and the page. */
export const VIEW_WORDS: Readonly<Record<View, string>> = {
  pending: 'pending',
  ready: 'ready',
  scheduled: 'scheduled',
  retrying: 'retrying',
  parked: 'parked',
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
  park: ({ to }) => (to === 'pending' ? 'Parked' : STOPPED),
  signal: () => 'Got a signal',
  expire: () => 'Expired',
  amend: ({ changed = [] }) => `Changed: ${changed.join(', ')}`,
  cancel: () => 'Cancelled',
  'request-cancel': () => 'Asked to stop',
  retry: ({ to }) => (to === 'pending' ? 'Retried by operator' : 'Retried by operator, none left'),
  replay: () => 'Replayed',
  archive: () => 'Archived',
  unarchive: () => 'Unarchived',
  depart: () => 'Moved to another store',
  arrive: () => 'Moved from another store',
}

const STOPPED = 'Stopped as requested'

export const happened = (entry: Entry): string =>
  Object.hasOwn(HAPPENED, entry.move) ? HAPPENED[entry.move]!(entry) : entry.move
