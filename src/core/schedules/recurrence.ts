/** Computes when recurring work is due: the slots after an instant, and which of the passed slots still fire. */
import { Cron } from 'croner'
import { HoldfastError } from '../errors.ts'
import type { Instant } from '../task.ts'

/** What becomes of slots that were missed: the latest one runs, all run, or none. */
export type CatchUp = 'skip' | 'last' | 'all'

/** Slots by the calendar of a timezone, or a grid: `origin + k × every`, for k from 1. */
export type Recurrence =
  | { readonly cron: string; readonly timezone: string }
  | { readonly every: number; readonly origin: Instant }

/** A slot that is at least this late counts as missed because of downtime, not as delayed by load. */
export const MISSED_AFTER = 60_000
/** The maximum number of slots to catch up. */
export const MOST_CAUGHT_UP = 1_000
const LONGEST_EXPRESSION = 256
const NICKNAME = /^@(yearly|annually|monthly|weekly|daily|midnight|hourly)$/i
/** Within these years every date falls on every weekday on which it can fall. */
const ALL_DATES = { from: new Date(Date.UTC(1999, 11, 31)), years: '2000-2027' }

/** The expression with single spaces. Throws INVALID_OPTION if it cannot be parsed or never matches. */
export const checkCron = (expression: string): string => {
  if (typeof expression !== 'string') throw refused('cron', 'must be text such as 0 9 * * 1-5')
  if (expression.length > LONGEST_EXPRESSION)
    throw refused('cron', `has ${expression.length} characters; the limit is ${LONGEST_EXPRESSION}`)
  const text = expression.trim().replaceAll(/\s+/g, ' ')
  if (NICKNAME.test(text)) return text
  const fields = text === '' ? [] : text.split(' ')
  if (fields.length !== 5 && fields.length !== 6) {
    throw refused(
      'cron',
      `'${text}' has ${fields.length} fields; five are needed (minute hour day month weekday), or six with seconds first`,
    )
  }
  try {
    cronOf(text, 'UTC')
  } catch (error) {
    const why = error instanceof Error ? error.message.replace(/^\w+: /, '') : String(error)
    throw refused('cron', `'${text}' cannot be read: ${why}`)
  }
  // Only the date can be impossible, so only the date is checked, over a few years instead of centuries.
  const dates = new Cron(`0 0 0 ${fields.slice(-3).join(' ')} ${ALL_DATES.years}`, { paused: true, timezone: 'UTC' })
  if (dates.nextRun(ALL_DATES.from) === null) throw refused('cron', `'${text}' never comes: there is no such date`)
  return text
}

/** An IANA name, such as Europe/Berlin. */
export const checkTimezone = (timezone: string): string => {
  try {
    if (typeof timezone !== 'string' || !/^[A-Za-z]/.test(timezone)) throw new RangeError()
    new Intl.DateTimeFormat('en', { timeZone: timezone })
    return timezone
  } catch {
    const told = typeof timezone === 'string' ? `'${timezone.slice(0, 40)}'` : `(a ${typeof timezone})`
    throw refused('timezone', `${told} is not a timezone: write an IANA name such as Europe/Berlin, or UTC`)
  }
}

/** The first slot after `after`; null if croner finds none. */
export const slotAfter = (recurrence: Recurrence, after: Instant): Instant | null => {
  if ('cron' in recurrence)
    return cronOf(recurrence.cron, recurrence.timezone).nextRun(new Date(after))?.getTime() ?? null
  const { every, origin } = recurrence
  return origin + Math.max(1, Math.floor((after - origin) / every) + 1) * every
}

export const slotsAfter = (recurrence: Recurrence, after: Instant, count: number): Instant[] => {
  const slots: Instant[] = []
  let slot = slotAfter(recurrence, after)
  while (slot !== null && slots.length < count) {
    slots.push(slot)
    slot = slotAfter(recurrence, slot)
  }
  return slots
}

export interface Due {
  /** To fire, oldest first. */
  readonly fire: readonly Instant[]
  /** The newest slot that has passed: when `fire` has fired, every slot up to it is handled. null if none has passed. */
  readonly newest: Instant | null
}

/**
 * The slots due at `now` when every slot up to `cursor` is handled: `skip` fires the newest slot if it is less than a minute late, `last` the
 * newest however late, `all` the newest 1,000.
 */
export const dueSlots = (recurrence: Recurrence, catchUp: CatchUp, cursor: Instant, now: Instant): Due => {
  const first = slotAfter(recurrence, cursor)
  if (first === null || first > now) return { fire: [], newest: null }
  if (catchUp === 'all') {
    const fire = newestSlots(recurrence, cursor, now, MOST_CAUGHT_UP)
    return { fire, newest: fire.at(-1)! }
  }
  const newest = newestSlots(recurrence, cursor, now, 1).at(-1)!
  return { fire: catchUp === 'last' || now - newest < MISSED_AFTER ? [newest] : [], newest }
}

/** The last `most` of the slots in (after, until], oldest first. */
const newestSlots = (recurrence: Recurrence, after: Instant, until: Instant, most: number): Instant[] => {
  if ('every' in recurrence) {
    const { every, origin } = recurrence
    const last = Math.floor((until - origin) / every)
    const first = Math.max(1, Math.floor((after - origin) / every) + 1, last - most + 1)
    return Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => origin + (first + i) * every)
  }
  const forward: Instant[] = []
  let slot = slotAfter(recurrence, after)
  while (slot !== null && slot <= until && forward.length <= most) {
    forward.push(slot)
    slot = slotAfter(recurrence, slot)
  }
  if (forward.length <= most) return forward
  // Croner searches backwards from a whole second, exclusive.
  const end = new Date((Math.floor(until / 1_000) + 1) * 1_000)
  const back = cronOf(recurrence.cron, recurrence.timezone).previousRuns(most, end)
  return back.map((date) => date.getTime()).reverse()
}

const known = new Map<string, Cron>()
const MOST_KNOWN = 1_000

/** Cached, because parsing costs more than a query. Always paused: croner starts no timers here. */
const cronOf = (expression: string, timezone: string): Cron => {
  const name = `${timezone} ${expression}`
  const held = known.get(name)
  if (held !== undefined) return held
  const made = new Cron(expression, { paused: true, timezone, mode: '5-or-6-parts' })
  if (known.size >= MOST_KNOWN) known.clear()
  known.set(name, made)
  return made
}

const refused = (field: string, why: string): HoldfastError =>
  new HoldfastError('INVALID_OPTION', `${field} ${why}`, { field })
