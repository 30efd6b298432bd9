/** Options from two places: what is said nearer to the task wins, also where it says the same by another name. */
import type { SubmitOptions } from './submission.ts'

/** Of each pair only one may be given: the nearer place decides which. */
const ALIKE: Readonly<Record<string, string>> = {
  ttl: 'expiresAt',
  expiresAt: 'ttl',
  delay: 'at',
  at: 'delay',
  maxRetries: 'maxAttempts',
  maxAttempts: 'maxRetries',
}

/** Defaults that do not go with `coalesce` give way to it. */
const NOT_COALESCED: ReadonlySet<string> = new Set(['delay', 'idempotencyTtl', 'onMismatch'])

/** An option that is undefined is not given. */
export const mergeOptions = (further: SubmitOptions, nearer: SubmitOptions): SubmitOptions => {
  for (const _ in further) return merged(further, nearer)
  return nearer
}

const merged = (further: SubmitOptions, nearer: SubmitOptions): SubmitOptions => {
  const options: Record<string, unknown> = {}
  const given = nearer as Readonly<Record<string, unknown>>
  // A policy by name brings its own number of retries.
  const hasPolicy = typeof nearer.retryPolicy === 'string'
  for (const [name, value] of Object.entries(further)) {
    const alike = ALIKE[name]
    if (alike !== undefined && given[alike] !== undefined) continue
    if (nearer.coalesce !== undefined && NOT_COALESCED.has(name)) continue
    if (hasPolicy && (name === 'maxRetries' || name === 'maxAttempts')) continue
    options[name] = value
  }
  for (const [name, value] of Object.entries(given)) if (value !== undefined) options[name] = value
  return options
}
