/** What a handler threw, as data on the task; and the three errors by which a handler says what it wants. */
import { type Duration, parseDuration } from './durations.ts'
import { cleanText } from './payload.ts'
import type { Instant, TaskError } from './task.ts'

/** Fail without retry. */
export class PermanentError extends Error {
  override readonly name: string = 'PermanentError'
}

/** Retry with backoff: what any other error does too. Says in the code that it was meant. */
export class RetryableError extends Error {
  override readonly name: string = 'RetryableError'
}

export interface RescheduleOptions {
  /** Added to `expiresAt` where the task has one. */
  readonly extendExpiration?: Duration
}

/** Anything with headers: a fetch Response. */
interface HasHeaders {
  readonly headers: { get(name: string): string | null }
}

/** Durable sleep: back to pending, due after `delay`. Not a failure; costs no retry. */
export class RescheduleError extends Error {
  override readonly name: string = 'RescheduleError'
  readonly delay: number
  /** Given instead of a delay where the answer named an instant. */
  readonly at: Instant | null
  readonly extendExpiration: number

  constructor(delay: Duration, options: RescheduleOptions & { readonly at?: Instant } = {}) {
    super('rescheduled')
    this.delay = parseDuration(delay, 'delay')
    this.at = options.at ?? null
    this.extendExpiration =
      options.extendExpiration === undefined ? 0 : parseDuration(options.extendExpiration, 'extendExpiration')
  }

  /** As the response's Retry-After says (seconds, or a date), else after `fallback`. */
  static after(response: HasHeaders, fallback: Duration = '60s', options: RescheduleOptions = {}): RescheduleError {
    const header = response.headers.get('retry-after')?.trim() ?? ''
    if (/^\d{1,9}$/.test(header)) return new RescheduleError({ seconds: Number(header) }, options)
    // Every form of an HTTP date begins with the day's name; Date.parse alone takes '-5' for a year.
    const at = /^[A-Za-z]{3}/.test(header) ? Date.parse(header) : Number.NaN
    if (Number.isNaN(at)) return new RescheduleError(fallback, options)
    // The server's own clock is the better witness of how far off its date is.
    const sentAt = Date.parse(response.headers.get('date') ?? '')
    if (Number.isNaN(sentAt)) return new RescheduleError(0, { ...options, at })
    return new RescheduleError({ milliseconds: Math.max(0, at - sentAt) }, options)
  }
}

const MAX_ERROR_BYTES = 8_192
const MAX_NAME = 128
const MAX_MESSAGE = 4_096

/** Whatever was thrown, as text of at most 8 KiB. Never throws, whatever its getters do. */
export const describeError = (thrown: unknown, at: Instant, attempt: number): TaskError => {
  const name = cut(read(thrown, 'name') || (isInstance(thrown, Error) ? 'Error' : 'Thrown'), MAX_NAME)
  const message = cut(read(thrown, 'message') || textOf(thrown), MAX_MESSAGE)
  const left = MAX_ERROR_BYTES - Buffer.byteLength(name) - Buffer.byteLength(message) - 64
  const stack = cut(read(thrown, 'stack'), left)
  return stack === '' ? { name, message, at, attempt } : { name, message, stack, at, attempt }
}

/** instanceof, also for a proxy that will not be asked: a handler may throw or return anything. */
const isInstance = <T>(value: unknown, kind: abstract new (...args: never[]) => T): value is T => {
  try {
    return value instanceof kind
  } catch {
    return false
  }
}

/** Also across copies of this package, where instanceof would not tell. */
export const isPermanent = (thrown: unknown): boolean =>
  isInstance(thrown, PermanentError) || (isInstance(thrown, Error) && read(thrown, 'name') === 'PermanentError')

export const isReschedule = (thrown: unknown): thrown is RescheduleError =>
  isInstance(thrown, RescheduleError) ||
  (isInstance(thrown, Error) &&
    read(thrown, 'name') === 'RescheduleError' &&
    Number.isFinite((thrown as Partial<RescheduleError>).delay))

const read = (thrown: unknown, field: 'name' | 'message' | 'stack'): string => {
  try {
    const value = (thrown as Record<string, unknown> | null | undefined)?.[field]
    return typeof value === 'string' ? value : ''
  } catch {
    return ''
  }
}

const textOf = (thrown: unknown): string => {
  try {
    return typeof thrown === 'object' && thrown !== null ? (JSON.stringify(thrown) ?? 'unknown error') : String(thrown)
  } catch {
    return 'an error that cannot be printed'
  }
}

const cut = (text: string, bytes: number): string => {
  const clean = cleanText(text.length > bytes ? text.slice(0, bytes) : text)
  if (Buffer.byteLength(clean) <= bytes) return clean
  return Buffer.from(clean)
    .subarray(0, bytes)
    .toString('utf8')
    .replace(/\uFFFD+$/, '')
}
