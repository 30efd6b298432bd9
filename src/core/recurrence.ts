/** When recurring work is due: slots after an instant, and which of the slots that have passed are still to fire. */
import { Cron } from 'croner'
import { HoldfastError } from './errors.ts'
import type { Instant } from './task.ts'

export type CatchUp = 'skip' | 'last' | 'all'

/** Slots by the calendar of a timezone, or a grid: `origin + k × every`, for k from 1. */
export type Recurrence =
  | { readonly cron: string; readonly timezone: string }
  | { readonly every: number; readonly origin: Instant }

/** A slot that is at least so late was missed: by downtime, not by a busy moment. */
export const MISSED_AFTER = 60_000
/** The most slots that are made up for. */
export const MOST_CAUGHT_UP = 1_000
const LONGEST_EXPRESSION = 256
const NICKNAME = /^@(yearly|annually|monthly|weekly|daily|midnight|hourly)$/i
/** In these years every date falls on every weekday that it ever falls on. */
const ALL_DATES = { from: new Date(Date.UTC(1999, 11, 31)), years: '2000-2027' }

/** The expression with single spaces, or INVALID_OPTION when it cannot be read or never comes true. */
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
  // Only the date can be impossible, so only the date is asked for: over a few years and not over centuries.
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

/** The first slot after `after`; null: there is none that croner can find. */
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
  /** The newest slot that has come: everything up to it is settled when `fire` has fired. null: none has come. */
  readonly newest: Instant | null
}

/**
 * What is due at `now` when everything up to `cursor` is settled. Slots that are a little late all fire. When some were
 * missed, `skip` fires nothing but a newest one that is only a little late, `last` the newest, `all` the newest 1,000.
 */
export const dueSlots = (recurrence: Recurrence, catchUp: CatchUp, cursor: Instant, now: Instant): Due => {
  const first = slotAfter(recurrence, cursor)
  if (first === null || first > now) return { fire: [], newest: null }
  if (catchUp === 'all' || now - first < MISSED_AFTER) {
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
  // Croner looks back from a whole second, which it leaves out.
  const end = new Date((Math.floor(until / 1_000) + 1) * 1_000)
  const back = cronOf(recurrence.cron, recurrence.timezone).previousRuns(most, end)
  return back.map((date) => date.getTime()).reverse()
}

const known = new Map<string, Cron>()
const MOST_KNOWN = 1_000

/** Parsing costs more than asking. Always paused: croner keeps no time here. */
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
