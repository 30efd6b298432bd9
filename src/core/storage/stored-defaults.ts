/**
 * The meaning of omitted fields of a stored task. These values belong to the storage format: they do not change with the
 * defaults of submit, so no release changes tasks that are already stored.
 */
import type { RetryPolicy } from '../task.ts'

interface StoredDefaults {
  readonly maxRetries: number
  readonly timeout: number
  readonly retryPolicy: RetryPolicy
}

export const STORED_DEFAULTS: StoredDefaults = {
  maxRetries: 3,
  timeout: 300_000,
  retryPolicy: { base: 500, multiplier: 2, max: 30_000, jitter: 'full' },
}
