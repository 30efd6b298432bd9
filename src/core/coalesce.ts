/**
 * Coalescing: many triggers, one task that waits. A trigger changes the task of its key while that was never claimed; otherwise a new task
 * takes the key. So the last trigger is always followed by a run that began after it.
 */
import { amend } from './amend.ts'
import { HoldfastError } from './errors.ts'
import { isExpiredAt } from './guards.ts'
import type { KeyRecord } from './idempotency.ts'
import type { Actor } from './moves.ts'
import { isPlainText, newSubmission, type SubmitFacts, type SubmitOptions } from './submission.ts'
import type { Change, Instant, TaskRecord } from './task.ts'
import { type Duration, parseDuration } from './values/durations.ts'
import { checkOptionNames } from './values/option-names.ts'
import type { Payload } from './values/payload.ts'

/** Joins a submit to a task that waits already, instead of making a second one. */
export interface CoalesceOptions {
  /** Triggers of the same type and key are one task while it waits. */
  readonly key: string
  /** Debounce: due this long after the last trigger. Left out: due at once, and a further trigger does not delay it. */
  readonly delay?: Duration
  /** With `delay`: due this long after the first trigger, however many follow. */
  readonly maxWait?: Duration
  /** Which input the task has: that of the last trigger (default), or of the first. */
  readonly input?: 'latest' | 'first'
}

/** The same, checked, in milliseconds. */
export interface Coalescing {
  readonly key: string
  readonly delay: number | null
  readonly maxWait: number | null
  readonly input: 'latest' | 'first'
}

const KNOWN: ReadonlySet<string> = new Set<keyof CoalesceOptions>(['key', 'delay', 'maxWait', 'input'])

/** Each says otherwise which task it is, or when it is due. */
const EXCLUDED = ['idempotencyKey', 'idempotencyTtl', 'onMismatch', 'id', 'at', 'delay'] as const

const LONGEST_KEY = 512

/** `beside`: the other options of the submit. */
export const parseCoalesce = (options: CoalesceOptions, beside: SubmitOptions): Coalescing => {
  checkOptionNames(options, KNOWN, 'coalesce')
  const { key, delay, maxWait, input = 'latest' } = options
  if (!isPlainText(key, LONGEST_KEY) || key === '')
    throw refused('key', 'must be well-formed text of 1 to 512 characters without NUL')
  if (maxWait !== undefined && delay === undefined) throw refused('maxWait', 'needs a delay: without one nothing waits')
  if (input !== 'latest' && input !== 'first') throw refused('input', "must be 'latest' or 'first'")
  for (const name of EXCLUDED) {
    if (beside[name] === undefined) continue
    const advice = name === 'delay' ? ': use coalesce.delay' : ': leave one of them out'
    throw new HoldfastError('INVALID_OPTION', `${name} cannot be used with coalesce${advice}`, { field: name })
  }
  return {
    key,
    delay: delay === undefined ? null : parseDuration(delay, 'coalesce.delay'),
    maxWait: maxWait === undefined ? null : parseDuration(maxWait, 'coalesce.maxWait'),
    input,
  }
}

const refused = (field: string, why: string): HoldfastError =>
  new HoldfastError('INVALID_OPTION', `coalesce.${field} ${why}`, { field: `coalesce.${field}` })

/**
 * The name of the key record. No type has a `#`, so no two pairs have one name; `digest` shortens what would be longer than a key may be.
 */
export const coalesceKey = (type: string, key: string, digest: (text: string) => string): string => {
  const name = `coalesce:${type}#${key}`
  return name.length <= LONGEST_KEY ? name : `coalesce:#${digest(name)}`
}

/**
 * The key of a new task need not outlive the task: a trigger replaces it anyway. But where key and task are two writes, others finish the
 * insert of a process that stopped between them only while the key lives by itself.
 */
const KEY_LIFE = 3_600_000

/** The task of a trigger that finds none to join, and its key. */
export const coalescingSubmission = (
  type: string,
  input: Payload,
  options: SubmitOptions,
  { delay, maxWait }: Coalescing,
  facts: Omit<SubmitFacts, 'reserved'> & { readonly key: string },
): { readonly task: TaskRecord; readonly key: KeyRecord } => {
  const { key, ...rest } = facts
  const wait = delay === null ? null : { delay: { milliseconds: Math.min(delay, maxWait ?? delay) } }
  const { task } = newSubmission(type, input, { ...options, ...wait }, { ...rest, reserved: { key } })
  // No two tasks are the same work: each stands for triggers of its own.
  const record = { key, taskId: task.id, hash: task.id, expiresAt: task.createdAt + KEY_LIFE, exact: false }
  return { task, key: record }
}

/**
 * - `join`: it waits and was never claimed, so that its run begins after this trigger.
 * - `expire`: its expiry has passed. It is marked as expired first: once another task has the key, no trigger may join it.
 * - `replace`: a new task takes the key.
 */
export const meeting = (task: TaskRecord | null, now: Instant): 'join' | 'expire' | 'replace' => {
  if (task === null || task.status !== 'pending' || task.attempts > 0) return 'replace'
  return isExpiredAt(task, now) ? 'expire' : 'join'
}

/** What the trigger changes of the task that it joins, `own` being the task that it would have made. null: nothing. */
export const joined = (
  task: TaskRecord,
  actor: Actor,
  { delay, maxWait, input }: Coalescing,
  own: Pick<TaskRecord, 'input' | 'encoding' | 'expiresAt'>,
): Change | null => {
  const expiresAt = later(task.expiresAt, own.expiresAt)
  return amend(task, actor, {
    ...(delay === null
      ? null
      : { availableAt: Math.min(actor.now + delay, task.createdAt + (maxWait ?? Number.POSITIVE_INFINITY)) }),
    ...(input === 'latest' ? { input: own.input, encoding: own.encoding } : null),
    // The run of this trigger has as much time to begin as if it had a task of its own.
    ...(expiresAt === task.expiresAt ? null : { expiresAt }),
  })
}

const later = (a: Instant | null, b: Instant | null): Instant | null =>
  a === null || b === null ? null : Math.max(a, b)
