/** The three errors with which a handler controls what happens next. */

import { HoldfastError } from './errors.ts'
import { type InstantInput, parseInstant } from './submission.ts'
import type { Instant } from './task.ts'
import { type Duration, LONGEST_DURATION, parseDuration } from './values/durations.ts'
import { isInstance, readField, readText } from './values/error-facts.ts'
import { LAST_INSTANT } from './values/instants.ts'

/** Fail without retry. */
export class PermanentError extends Error {
  override readonly name: string = 'PermanentError'
}

/** When the task runs again, and the cause of the failure. */
export interface RetryableOptions extends ErrorOptions {
  /** Replaces the backoff before the next run, this once. Default: the retry policy decides. */
  readonly delay?: Duration
}

/** Retry, like any other error. States the intent in the code, and may name the delay. */
export class RetryableError extends Error {
  override readonly name: string = 'RetryableError'
  /** Milliseconds; null: the retry policy decides. */
  readonly delay: number | null

  constructor(message?: string, { delay, ...options }: RetryableOptions = {}) {
    super(message, options)
    this.delay = delay === undefined ? null : parseDuration(delay, 'delay')
  }
}

/** The delay that a RetryableError names; null: none. Never throws: the error may come from another copy of this package. */
export const retryDelay = (thrown: unknown): number | null => {
  if (!isInstance(thrown, RetryableError) && readText(thrown, 'name') !== 'RetryableError') return null
  const delay = readField(thrown, 'delay')
  return typeof delay === 'number' && Number.isFinite(delay) ? within(delay, 0, LONGEST_DURATION) : null
}

/** What a durable sleep changes besides the time. */
export interface RescheduleOptions {
  /** Added to `expiresAt` where the task has one. */
  readonly extendExpiration?: Duration
  /** Also pauses the queue of the task, or its group in the queue, until it is due again, for 24 hours at most: one 429 stops all workers. */
  readonly pause?: 'queue' | 'group'
}

/** Anything with headers: a fetch Response. */
interface HasHeaders {
  readonly headers: { get(name: string): string | null }
}

/** Durable sleep: back to pending, due after `delay`. Not a failure; costs no retry. */
export class RescheduleError extends Error {
  override readonly name: string = 'RescheduleError'
  /** Milliseconds. */
  readonly delay: number
  /** Used instead of a delay if the response names an instant. */
  readonly at: Instant | null
  /** Milliseconds by which the expiry moves. */
  readonly extendExpiration: number
  /** What else waits as long; null: nothing. */
  readonly pause: 'queue' | 'group' | null

  constructor(delay: Duration, options: RescheduleOptions & { readonly at?: InstantInput } = {}) {
    super('rescheduled')
    this.delay = parseDuration(delay, 'delay')
    this.at = options.at === undefined || options.at === null ? null : parseInstant(options.at, 'at')
    this.extendExpiration =
      options.extendExpiration === undefined ? 0 : parseDuration(options.extendExpiration, 'extendExpiration')
    if (options.pause !== undefined && options.pause !== 'queue' && options.pause !== 'group')
      throw new HoldfastError('INVALID_OPTION', "pause must be 'queue' or 'group'", { field: 'pause' })
    this.pause = options.pause ?? null
  }

  /** Follows the response's Retry-After (seconds or a date), otherwise uses `fallback`. A wait of over a century is cut to one. */
  static after(response: HasHeaders, fallback: Duration = '60s', options: RescheduleOptions = {}): RescheduleError {
    const header = response.headers.get('retry-after')?.trim() ?? ''
    if (/^\d{1,9}$/.test(header)) return new RescheduleError({ seconds: Number(header) }, options)
    // Every HTTP date begins with a weekday. Date.parse alone would read '-5' as a year.
    const at = /^[A-Za-z]{3}/.test(header) ? Date.parse(header) : Number.NaN
    if (Number.isNaN(at)) return new RescheduleError(fallback, options)
    // The server's clock tells best how far away its date is.
    const sentAt = Date.parse(response.headers.get('date') ?? '')
    if (!Number.isNaN(sentAt)) return new RescheduleError(atMostACentury(at - sentAt), options)
    if (at <= LONG_AGO) return new RescheduleError(0, options)
    return new RescheduleError(0, { ...options, at: Math.min(at, LAST_INSTANT) })
  }
}

const LONG_AGO = Date.UTC(2000, 0)

const atMostACentury = (milliseconds: number): Duration => ({
  milliseconds: within(milliseconds, 0, LONGEST_DURATION),
})

const within = (value: number, least: number, most: number): number =>
  Math.min(Math.max(Math.round(value), least), most)

/** Works across copies of this package, where instanceof fails. */
export const isPermanent = (thrown: unknown): boolean =>
  isInstance(thrown, PermanentError) ||
  (isInstance(thrown, Error) &&
    (readText(thrown, 'name') === 'PermanentError' || PERMANENT_CODES.has(readText(thrown, 'code') ?? '')))

/** Of HoldfastErrors about steps that every repeat would meet again. */
const PERMANENT_CODES: ReadonlySet<string> = new Set(['STEP_INVALID', 'STEPS_TOO_LARGE'])

/** What a RescheduleError asks for, in times that every store can keep. */
export interface RescheduleWish {
  readonly delay: number
  readonly at: Instant | null
  readonly extendExpiration: number
  readonly pause: 'queue' | 'group' | null
}

const pauseIn = (text: string | null): RescheduleWish['pause'] => (text === 'queue' || text === 'group' ? text : null)

/**
 * The wish in what a handler threw or returned. null: it is something else. A HoldfastError: it asks for a time that is none, which
 * fails the attempt. Never throws: the error may come from another copy of this package, or only look like ours.
 */
export const rescheduleWish = (thrown: unknown): RescheduleWish | HoldfastError | null => {
  if (!isInstance(thrown, Error)) return null
  const isOurs = isInstance(thrown, RescheduleError)
  if (!isOurs && readText(thrown, 'name') !== 'RescheduleError') return null
  const [delay, at, extendExpiration] = ['delay', 'at', 'extendExpiration'].map(
    (name) => readField(thrown, name) ?? null,
  )
  // An error of that name without any time comes from elsewhere: it fails the attempt as it is.
  if (!isOurs && typeof delay !== 'number' && typeof at !== 'number') return null
  if (!isTime(delay)) return noTime('delay', delay)
  if (!isTime(at)) return noTime('at', at)
  if (!isTime(extendExpiration)) return noTime('extendExpiration', extendExpiration)
  return {
    delay: within(delay ?? 0, 0, LONGEST_DURATION),
    at: at === null ? null : within(at, 0, LAST_INSTANT),
    extendExpiration: within(extendExpiration ?? 0, 0, LONGEST_DURATION),
    pause: pauseIn(readText(thrown, 'pause')),
  }
}

export const isReschedule = (thrown: unknown): boolean => {
  const wish = rescheduleWish(thrown)
  return wish !== null && !(wish instanceof HoldfastError)
}

const isTime = (value: unknown): value is number | null => value === null || Number.isFinite(value)

const noTime = (field: string, value: unknown): HoldfastError => {
  const given = typeof value === 'number' ? String(value) : `a ${typeof value}`
  const why = `${field} of the RescheduleError is ${given}: it must be a finite number of milliseconds`
  return new HoldfastError('INVALID_OPTION', why, { field })
}

/** A wrong Retry-After must not stop a queue for longer. */
const LONGEST_PAUSE = 86_400_000

/** Until when the queue of a task pauses that is rescheduled now. */
export const pauseEnd = (wish: RescheduleWish, now: Instant): Instant =>
  now + Math.min(waitOf(wish, now), LONGEST_PAUSE)

/** How long a task waits that is rescheduled now. */
export const waitOf = ({ delay, at }: RescheduleWish, now: Instant): number =>
  at === null ? delay : within(at - now, 0, LONGEST_DURATION)
