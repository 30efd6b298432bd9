/** How long to wait before the next run: exponential with jitter. The random number is handed in. */
import { type Duration, parseDuration } from './durations.ts'
import { HoldfastError } from './errors.ts'
import type { Jitter, RetryPolicy } from './task.ts'

export const DEFAULT_RETRY_POLICY: RetryPolicy = { base: 500, multiplier: 2, max: 30_000, jitter: 'full' }

export interface RetryPolicyOptions {
  readonly base?: Duration
  readonly multiplier?: number
  readonly max?: Duration
  readonly jitter?: Jitter
}

const JITTERS: readonly Jitter[] = ['full', 'equal', 'none']

/**
 * Milliseconds to wait: `random(0, min(base × multiplier^retryCount, max))`, with retryCount before the increment, so
 * the first cap is the base. `random` is in [0, 1).
 */
export const backoff = (policy: RetryPolicy | null, retryCount: number, random: number): number => {
  const { base, multiplier, max, jitter } = policy ?? DEFAULT_RETRY_POLICY
  // 0 × ∞ is not a number: after enough retries the power is ∞, and a base of 0 is still no wait.
  const cap = base === 0 ? 0 : Math.min(base * multiplier ** retryCount, max)
  if (jitter === 'none') return Math.round(cap)
  if (jitter === 'equal') return Math.round(cap / 2 + random * (cap / 2))
  return Math.round(random * cap)
}

export const parseRetryPolicy = (options: RetryPolicyOptions): RetryPolicy => {
  const unknown = Object.keys(options).find((name) => !(name in DEFAULT_RETRY_POLICY))
  if (unknown !== undefined) throw refused(unknown, 'is not a part of a retry policy (base, multiplier, max, jitter)')
  const { multiplier = DEFAULT_RETRY_POLICY.multiplier, jitter = DEFAULT_RETRY_POLICY.jitter } = options
  if (!Number.isFinite(multiplier) || multiplier < 1) throw refused('multiplier', 'must be a number of at least 1')
  if (!JITTERS.includes(jitter)) throw refused('jitter', `must be one of ${JITTERS.join(', ')}`)
  const base = options.base === undefined ? DEFAULT_RETRY_POLICY.base : parseDuration(options.base, 'retryPolicy.base')
  const max =
    options.max === undefined ? Math.max(DEFAULT_RETRY_POLICY.max, base) : parseDuration(options.max, 'retryPolicy.max')
  if (max < base) throw refused('max', 'must not be less than base')
  return { base, multiplier, max, jitter }
}

const refused = (field: string, why: string): HoldfastError =>
  new HoldfastError('INVALID_OPTION', `retryPolicy.${field} ${why}`, { field: `retryPolicy.${field}` })
