/** Computes the wait before the next run: exponential backoff with jitter. The random number is an argument. */

import { HoldfastError } from './errors.ts'
import { STORED_DEFAULTS } from './storage/stored-defaults.ts'
import type { Jitter, RetryPolicy } from './task.ts'
import { type Duration, parseDuration } from './values/durations.ts'

/** The policy of a task that was submitted without one. */
export const DEFAULT_RETRY_POLICY: RetryPolicy = { base: 500, multiplier: 2, max: 30_000, jitter: 'full' }

/** A retry policy: what is left out has its default. */
export interface RetryPolicyOptions {
  /** The first wait is at most this long. Default 500 ms. */
  readonly base?: Duration
  /** Each wait may be this many times as long as the one before. At least 1; default 2. */
  readonly multiplier?: number
  /** No wait is longer. Default 30 s, or `base` if that is longer. */
  readonly max?: Duration
  /** 'full': from nothing to the whole wait, at random (default). 'equal': from half of it. 'none': exactly the wait. */
  readonly jitter?: Jitter
}

/** A policy with the number of retries that gives it its total length. */
interface NamedPolicy extends RetryPolicy {
  readonly maxRetries: number
}

/** Named by the total length of all waits, without the time of the runs. */
export const RETRY_POLICIES = {
  /** Seconds: three retries within 3.5 s. The default. */
  quick: { ...DEFAULT_RETRY_POLICY, maxRetries: 3 },
  /** Minutes: eight retries within 8 to 15 minutes. */
  patient: { base: 5_000, multiplier: 2, max: 300_000, jitter: 'equal', maxRetries: 8 },
  /** Days: twenty retries within 37 to 75 hours. */
  stubborn: { base: 60_000, multiplier: 2, max: 21_600_000, jitter: 'equal', maxRetries: 20 },
} as const satisfies Record<string, NamedPolicy>

/** The name of a retry policy that comes with the package. */
export type RetryPolicyName = keyof typeof RETRY_POLICIES

/** The number of retries of a named policy. */
export const retriesOf = (policy: RetryPolicyOptions | RetryPolicyName | undefined): number | undefined =>
  typeof policy === 'string' ? namedPolicy(policy).maxRetries : undefined

const namedPolicy = (name: RetryPolicyName): NamedPolicy => {
  if (Object.hasOwn(RETRY_POLICIES, name)) return RETRY_POLICIES[name]
  const names = Object.keys(RETRY_POLICIES)
  throw new HoldfastError('INVALID_OPTION', `retryPolicy '${name}' is none of ${names.join(', ')}`, {
    field: 'retryPolicy',
  })
}

const JITTERS: readonly Jitter[] = ['full', 'equal', 'none']

/**
 * Milliseconds to wait: `random(0, min(base × multiplier^retryCount, max))`, with retryCount before the increment, so
 * the first cap is the base. `random` is in [0, 1).
 */
export const backoff = (policy: RetryPolicy | null, retryCount: number, random: number): number => {
  const { base, multiplier, max, jitter } = policy ?? STORED_DEFAULTS.retryPolicy
  // 0 × ∞ is NaN: after enough retries the power is ∞, and a base of 0 must still mean no wait.
  const cap = base === 0 ? 0 : Math.min(base * multiplier ** retryCount, max)
  if (jitter === 'none') return Math.round(cap)
  if (jitter === 'equal') return Math.round(cap / 2 + random * (cap / 2))
  return Math.round(random * cap)
}

export const parseRetryPolicy = (options: RetryPolicyOptions | RetryPolicyName): RetryPolicy => {
  if (typeof options === 'string') {
    const { maxRetries: _, ...policy } = namedPolicy(options)
    return policy
  }
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

const isStoredDefault = (policy: RetryPolicy): boolean => {
  const { base, multiplier, max, jitter } = STORED_DEFAULTS.retryPolicy
  return policy.base === base && policy.multiplier === multiplier && policy.max === max && policy.jitter === jitter
}

/** The stored form: null for the policy that a stored null means. */
export const storedRetryPolicy = (policy: RetryPolicy): RetryPolicy | null => (isStoredDefault(policy) ? null : policy)

const refused = (field: string, why: string): HoldfastError =>
  new HoldfastError('INVALID_OPTION', `retryPolicy.${field} ${why}`, { field: `retryPolicy.${field}` })
