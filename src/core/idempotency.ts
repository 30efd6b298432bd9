/** An idempotency key is a record of its own: it outlives its task, and only these rules say when it ends. */
import { canonicalJson, decodePayload, type Payload } from './payload.ts'
import type { Instant } from './task.ts'

export interface KeyRecord {
  readonly key: string
  readonly taskId: string
  /** Of type and canonical input: tells a repeat from a clash. */
  readonly hash: string
  /** The key lives at least until then; exactly until then when `exact`. */
  readonly expiresAt: Instant
  /** A lifetime given on submit ends the key exactly, even while its task is there. */
  readonly exact: boolean
}

export const DEFAULT_IDEMPOTENCY_TTL = 86_400_000

/** Whether the key still stands for its task. */
export const keyIsLive = (key: KeyRecord, taskExists: boolean, now: Instant): boolean =>
  now < key.expiresAt || (!key.exact && taskExists)

/** What is hashed: two submissions with the same text are the same work. */
export const keySubject = (type: string, input: Payload): string =>
  `${type}\n${input.encoding}\n${input.encoding === 'json' ? canonicalJson(decodePayload(input.text, 'json')) : input.text}`

/** Keys that Holdfast makes itself. */
export const RESERVED_KEY = /^(replay|schedule):/
