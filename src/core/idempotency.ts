/** An idempotency key is a separate record that outlives its task. These rules decide when it ends. */

import type { Instant } from './task.ts'
import { canonicalJson, decodePayload, type Payload } from './values/payload.ts'

/** An idempotency key, and the task that has it. */
export interface KeyRecord {
  readonly key: string
  readonly taskId: string
  /** The hash of type and canonical input, which distinguishes a repeat from a conflict. */
  readonly hash: string
  /** The key lives at least until then; exactly until then when `exact`. */
  readonly expiresAt: Instant
  /** A lifetime given on submit ends the key exactly then, even while its task exists. */
  readonly exact: boolean
}

export const DEFAULT_IDEMPOTENCY_TTL = 86_400_000

/** Whether the key is still valid for its task. */
export const keyIsLive = (key: KeyRecord, taskExists: boolean, now: Instant): boolean =>
  now < key.expiresAt || (!key.exact && taskExists)

/** The text to hash: two submissions with the same text are the same work. */
export const keySubject = (type: string, input: Payload): string =>
  `${type}\n${input.encoding}\n${input.encoding === 'json' ? canonicalJson(decodePayload(input.text, 'json')) : input.text}`

/** Keys that Holdfast generates. */
export const RESERVED_KEY = /^(replay|schedule|coalesce):/
