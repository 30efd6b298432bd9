/** Errors as text between processes. Name, message, code, detail, causes, parts, stack and kind survive. */

import {
  isPermanent,
  PermanentError,
  RescheduleError,
  type RescheduleWish,
  RetryableError,
  rescheduleWish,
} from '../../../core/failure.ts'
import { Parked, SignalInvalid, SignalTimeout } from '../../../core/steps/step-errors.ts'
import { isInstance, messageOf, readField, readText } from '../../../core/values/error-facts.ts'

export interface ErrorText {
  readonly kind: 'error' | 'permanent' | 'retryable' | 'reschedule' | 'parked' | 'signal-timeout' | 'signal-invalid'
  readonly name: string
  readonly message: string
  readonly stack?: string
  readonly code?: string | number
  /** The `detail` of a database driver's error. */
  readonly detail?: string
  readonly cause?: ErrorText
  /** The parts of an AggregateError. */
  readonly errors?: readonly ErrorText[]
  /** The delay of a reschedule or a retry, in milliseconds. */
  readonly delay?: number
  readonly at?: number
  readonly extendExpiration?: number
  readonly pause?: 'queue' | 'group'
  /** The step that was parked or waited for a signal, and the signal that was refused. */
  readonly step?: string
  readonly signal?: SignalInvalid['signal']
}

/** Deeper chains are cut. */
const MOST_CAUSES = 8
/** A task keeps four. */
const MOST_PARTS = 8
/** A task keeps 8 KiB of an error. */
const MOST_TEXT = 16_384

/** Never throws, even if getters of the thrown value do. */
export const errorText = (thrown: unknown, depth = 0): ErrorText => {
  const wish = rescheduleWish(thrown)
  if (wish instanceof Error) return errorText(wish, depth)
  const kind = wish === null ? kindOf(thrown) : 'reschedule'
  const code = readField(thrown, 'code')
  const cause = readField(thrown, 'cause')
  const stack = readText(thrown, 'stack')
  const detail = readText(thrown, 'detail')
  const isCoded = typeof code === 'string' || typeof code === 'number'
  return {
    kind,
    name: cut(readText(thrown, 'name')) || (isInstance(thrown, Error) ? 'Error' : 'Thrown'),
    message: cut(messageOf(thrown)),
    ...(stack === '' ? null : { stack: cut(stack) }),
    ...(isCoded ? { code } : null),
    ...(detail === '' ? null : { detail: cut(detail) }),
    ...partsOf(thrown, depth),
    ...(cause === undefined || cause === null || depth >= MOST_CAUSES ? null : { cause: errorText(cause, depth + 1) }),
    ...(wish === null ? delayOf(thrown) : wishText(wish)),
    ...stepOf(thrown),
  }
}

/** The same error on the other side. */
export const errorOf = (text: ErrorText): Error => {
  const error = made(text)
  const fields = {
    name: text.name,
    message: text.message,
    ...(text.stack === undefined ? null : { stack: text.stack }),
    ...(text.code === undefined ? null : { code: text.code }),
    ...(text.detail === undefined ? null : { detail: text.detail }),
    ...(text.cause === undefined ? null : { cause: errorOf(text.cause) }),
    ...(text.errors === undefined ? null : { errors: text.errors.map(errorOf) }),
  }
  for (const [name, value] of Object.entries(fields))
    Object.defineProperty(error, name, { value, enumerable: false, configurable: true, writable: true })
  return error
}

const made = (text: ErrorText): Error => {
  const { kind, message, delay, at, extendExpiration = 0, pause, step = '', signal } = text
  if (kind === 'parked') return new Parked(step)
  if (kind === 'signal-timeout') return new SignalTimeout(step)
  if (kind === 'signal-invalid') return new SignalInvalid(step, signal!, message)
  if (kind === 'permanent') return new PermanentError(message)
  if (kind === 'retryable')
    return new RetryableError(message, delay === undefined ? {} : { delay: { milliseconds: delay } })
  if (kind === 'error') return new Error(message)
  return Object.assign(new RescheduleError(0), {
    delay: delay ?? 0,
    at: at ?? null,
    extendExpiration,
    pause: pause ?? null,
  })
}

const stepOf = (thrown: unknown): Pick<ErrorText, 'step' | 'signal'> | null => {
  if (isInstance(thrown, SignalInvalid)) return { step: thrown.step, signal: thrown.signal }
  return isInstance(thrown, Parked) || isInstance(thrown, SignalTimeout) ? { step: thrown.step } : null
}

const kindOf = (thrown: unknown): ErrorText['kind'] => {
  if (isInstance(thrown, Parked)) return 'parked'
  if (isInstance(thrown, SignalTimeout)) return 'signal-timeout'
  if (isInstance(thrown, SignalInvalid)) return 'signal-invalid'
  if (isPermanent(thrown)) return 'permanent'
  return isInstance(thrown, RetryableError) || readText(thrown, 'name') === 'RetryableError' ? 'retryable' : 'error'
}

const partsOf = (thrown: unknown, depth: number): Pick<ErrorText, 'errors'> | null => {
  const parts = readField(thrown, 'errors')
  if (!isInstance(thrown, Error) || !Array.isArray(parts) || depth >= MOST_CAUSES) return null
  // Parts of parts are cut like the deepest causes: they are rare.
  return { errors: parts.slice(0, MOST_PARTS).map((part) => errorText(part, depth === 0 ? 1 : MOST_CAUSES)) }
}

const cut = (text: string): string => text.slice(0, MOST_TEXT)

const wishText = ({ at, pause, ...wish }: RescheduleWish): Partial<ErrorText> => ({
  ...wish,
  ...(at === null ? null : { at }),
  ...(pause === null ? null : { pause }),
})

const delayOf = (thrown: unknown): { readonly delay: number } | null => {
  const delay = readField(thrown, 'delay')
  return typeof delay === 'number' && Number.isFinite(delay) ? { delay } : null
}
