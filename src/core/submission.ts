/** Validates a submission, fills in defaults, and builds the task record. Nothing is written before this succeeds. */
import type { CoalesceOptions } from './coalesce.ts'
import { type Code, HoldfastError } from './errors.ts'
import { DEFAULT_IDEMPOTENCY_TTL, RESERVED_KEY } from './idempotency.ts'
import {
  DEFAULT_RETRY_POLICY,
  parseRetryPolicy,
  type RetryPolicyName,
  type RetryPolicyOptions,
  retriesOf,
  storedRetryPolicy,
} from './retry.ts'
import type { HistoryEntry, Instant, TaskRecord } from './task.ts'
import { type Duration, parseDuration } from './values/durations.ts'
import { isInstant } from './values/instants.ts'
import { unknownOption } from './values/option-names.ts'
import type { Payload } from './values/payload.ts'

/** An instant as a caller writes it: a Date, ISO 8601 with an offset, or epoch milliseconds. */
export type InstantInput = Date | string | number

/** Options of `submit`. */
export interface SubmitOptions {
  /** Default 'default'. 1 to 128 characters of A-Z a-z 0-9 _ . : / - */
  readonly queue?: string
  /** -1000 to 1000, higher first. Default 0. */
  readonly priority?: number
  /** Whose work it is: a tenant, an account, a resource. The limits of a queue may bind each group. */
  readonly group?: string
  /** Not claimable before this instant. Or: */
  readonly at?: InstantInput
  /** Not claimable before this time has passed. */
  readonly delay?: Duration
  /** Expires after this time. Or: */
  readonly ttl?: Duration
  /** Expires at this instant, unless a worker has claimed it by then. Default: never. */
  readonly expiresAt?: InstantInput
  /** Retries after the first run; null: unlimited. Default 3. */
  readonly maxRetries?: number | null
  /** Another name for `maxRetries: n - 1`; 0: unlimited. */
  readonly maxAttempts?: number
  /** Durable sleeps before the task is dead; null: unlimited, the default. */
  readonly maxReschedules?: number | null
  /**
   * How long to wait between runs, or a name: 'quick' (seconds, 3 retries: the default), 'patient' (minutes, 8 retries),
   * 'stubborn' (days, 20 retries). The retries of a named policy apply unless maxRetries is given.
   */
  readonly retryPolicy?: RetryPolicyOptions | RetryPolicyName
  /** Limit on one run; null: none. Default 5 minutes. */
  readonly timeout?: Duration | null
  /** The same key returns the same task instead of creating another one. 1 to 512 characters. */
  readonly idempotencyKey?: string
  /** Ends the key exactly then. Without it, a key lives as long as its task and at least 24 hours. */
  readonly idempotencyTtl?: Duration
  /** If the key was used with another type or input: an error (default), or the existing task. */
  readonly onMismatch?: 'error' | 'existing'
  /** One task for many triggers of a key, for as long as it waits. Excludes `idempotencyKey`, `id`, `at`, `delay` and `tx`. */
  readonly coalesce?: CoalesceOptions
  /** For filters and for people: up to 20 names of up to 64 characters, with values of up to 256. */
  readonly tags?: Readonly<Record<string, string>>
  /** Any UUID. Generated if omitted. */
  readonly id?: string
}

export const DEFAULTS = { queue: 'default', priority: 0, maxRetries: 3, timeout: 300_000 } as const

const KNOWN: ReadonlySet<string> = new Set<keyof SubmitOptions | 'tx'>([
  'queue',
  'priority',
  'group',
  'at',
  'delay',
  'ttl',
  'expiresAt',
  'maxRetries',
  'maxAttempts',
  'maxReschedules',
  'retryPolicy',
  'timeout',
  'idempotencyKey',
  'idempotencyTtl',
  'onMismatch',
  'coalesce',
  'tags',
  'id',
  'tx',
])

/** Facts from the runtime: the time, generated ids, the caller. */
export interface SubmitFacts {
  readonly now: Instant
  readonly id: string
  readonly op: string
  readonly by: string
  /** For submits by Holdfast itself: a reserved key, and the origin of the task. */
  readonly reserved?: { readonly key: string; readonly replayOf?: string; readonly scheduleId?: string }
}

export interface Submission {
  readonly task: TaskRecord
  /** Present if the task has an idempotency key; the runtime computes the hash. */
  readonly key: { readonly expiresAt: Instant; readonly exact: boolean } | null
}

export const newSubmission = (type: string, input: Payload, options: SubmitOptions, facts: SubmitFacts): Submission => {
  checkOptions(options)
  const { now, reserved } = facts
  const availableAt = dueAt(options, now)
  const expiresAt = expiryOf(options, now)
  const idempotencyKey =
    reserved?.key ?? (options.idempotencyKey === undefined ? null : checkKey(options.idempotencyKey))
  const entry: HistoryEntry = {
    n: 1,
    at: now,
    move: 'submit',
    to: 'pending',
    by: facts.by,
    op: facts.op,
    ...(availableAt > now ? { availableAt } : null),
    ...(expiresAt === null ? null : { expiresAt }),
  }
  const task: TaskRecord = {
    id: options.id === undefined ? facts.id : checkId(options.id),
    queue: options.queue === undefined ? DEFAULTS.queue : checkName(options.queue, 'queue', 'INVALID_OPTION'),
    type: checkName(type, 'type', 'INVALID_TASK'),
    input: input.text,
    encoding: input.encoding,
    output: null,
    outputEncoding: 'json',
    outputError: null,
    status: 'pending',
    priority:
      options.priority === undefined ? DEFAULTS.priority : checkInteger(options.priority, 'priority', -1000, 1000),
    group: options.group === undefined ? null : checkGroup(options.group),
    availableAt,
    expiresAt,
    expiredAt: null,
    idempotencyKey,
    attempts: 0,
    retryCount: 0,
    maxRetries: maxRetriesOf(options),
    rescheduleCount: 0,
    maxReschedules:
      options.maxReschedules === undefined || options.maxReschedules === null
        ? null
        : checkInteger(options.maxReschedules, 'maxReschedules', 0, 1_000_000_000),
    replayCount: 0,
    replayedAs: null,
    replayOf: reserved?.replayOf ?? null,
    retryPolicy:
      options.retryPolicy === undefined
        ? storedRetryPolicy(DEFAULT_RETRY_POLICY)
        : parseRetryPolicy(options.retryPolicy),
    timeout: timeoutOf(options.timeout),
    lease: null,
    cancelRequestedAt: null,
    lastError: null,
    progress: null,
    createdAt: now,
    updatedAt: now,
    startedAt: null,
    completedAt: null,
    archivedFrom: null,
    scheduleId: reserved?.scheduleId ?? null,
    tags: options.tags === undefined ? null : checkTags(options.tags),
    parked: null,
    generation: 0,
    hasJournal: false,
    journal: [],
    revision: 1,
    history: [entry],
  }
  return { task, key: idempotencyKey === null ? null : keyLifetime(options, now) }
}

const dueAt = ({ at, delay }: SubmitOptions, now: Instant): Instant => {
  if (at !== undefined) return parseInstant(at, 'at')
  return delay === undefined ? now : now + parseDuration(delay, 'delay')
}

const expiryOf = ({ expiresAt, ttl }: SubmitOptions, now: Instant): Instant | null => {
  if (expiresAt !== undefined) return parseInstant(expiresAt, 'expiresAt')
  return ttl === undefined ? null : now + parseDuration(ttl, 'ttl')
}

/** Validates default options now, by building a task and discarding it. */
export const checkDefaults = (defaults: SubmitOptions, known: ReadonlySet<string>, of: string): void => {
  for (const name in defaults) if (!known.has(name)) throw unknownOption(name, known, of)
  const { idempotencyTtl, ...rest } = defaults
  if (idempotencyTtl !== undefined) parseDuration(idempotencyTtl, 'idempotencyTtl')
  newSubmission('checked', { text: 'null', encoding: 'json' }, rest, { now: 0, id: '', op: '', by: '' })
}

/** Options of a single task, which cannot be defaults. */
const OF_ONE: ReadonlySet<string> = new Set(['id', 'idempotencyKey', 'coalesce', 'at', 'expiresAt', 'tx'])
export const DEFAULTABLE: ReadonlySet<string> = new Set([...KNOWN].filter((name) => !OF_ONE.has(name)))

const keyLifetime = ({ idempotencyTtl }: SubmitOptions, now: Instant): { expiresAt: Instant; exact: boolean } =>
  idempotencyTtl === undefined
    ? { expiresAt: now + DEFAULT_IDEMPOTENCY_TTL, exact: false }
    : { expiresAt: now + parseDuration(idempotencyTtl, 'idempotencyTtl'), exact: true }

const EXCLUSIVE: readonly (readonly [keyof SubmitOptions, keyof SubmitOptions])[] = [
  ['ttl', 'expiresAt'],
  ['at', 'delay'],
  ['maxRetries', 'maxAttempts'],
]

const checkOptions = (options: SubmitOptions): void => {
  for (const name in options) {
    if (!KNOWN.has(name)) throw unknownOption(name, KNOWN, 'submit')
  }
  for (const [one, other] of EXCLUSIVE) {
    if (options[one] !== undefined && options[other] !== undefined) {
      throw refused('INVALID_OPTION', one, `and ${other} cannot be combined: give one of them`)
    }
  }
  if (options.idempotencyKey === undefined && options.idempotencyTtl !== undefined) {
    throw refused('INVALID_OPTION', 'idempotencyTtl', 'needs an idempotencyKey')
  }
  // The runtime takes it out where it can be used: see coalesce.ts.
  if (options.coalesce !== undefined) throw refused('INVALID_OPTION', 'coalesce', 'is not possible here')
  if (options.onMismatch !== undefined && options.onMismatch !== 'error' && options.onMismatch !== 'existing') {
    throw refused('INVALID_OPTION', 'onMismatch', "must be 'error' or 'existing'")
  }
}

const maxRetriesOf = ({ maxRetries, maxAttempts, retryPolicy }: SubmitOptions): number | null => {
  if (maxAttempts !== undefined) {
    const attempts = checkInteger(maxAttempts, 'maxAttempts', 0, 1_000_000_000)
    return attempts === 0 ? null : attempts - 1
  }
  if (maxRetries === undefined) return retriesOf(retryPolicy) ?? DEFAULTS.maxRetries
  return maxRetries === null ? null : checkInteger(maxRetries, 'maxRetries', 0, 1_000_000_000)
}

const timeoutOf = (timeout: Duration | null | undefined): number | null => {
  if (timeout === undefined) return DEFAULTS.timeout
  if (timeout === null) return null
  const limit = parseDuration(timeout, 'timeout')
  if (limit === 0)
    throw refused('INVALID_OPTION', 'timeout', 'is 0: no run could ever finish. Leave it out, or use null for no limit')
  return limit
}

const OFFSET = /(Z|[+-]\d\d:?\d\d)$/i
/** 1973: a smaller number is probably in seconds, not milliseconds. */
const EARLIEST: Instant = 100_000_000_000

/** Reads an instant: a Date, UTC milliseconds, or text in ISO 8601. */
export const parseInstant = (value: InstantInput, field: string): Instant => {
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) throw refused('INVALID_OPTION', field, 'is not an instant in milliseconds')
    if (value < EARLIEST)
      throw refused(
        'INVALID_OPTION',
        field,
        `is ${value}: an instant is in milliseconds since 1970, this looks like seconds`,
      )
    return inCalendar(Math.round(value), field)
  }
  if (typeof value === 'string' && !(OFFSET.test(value) && value.includes('T'))) {
    throw refused(
      'INVALID_OPTION',
      field,
      `'${value.slice(0, 40)}' must be ISO 8601 with an offset, such as 2026-01-28T17:00:00Z`,
    )
  }
  const at = value instanceof Date ? value.getTime() : typeof value === 'string' ? Date.parse(value) : Number.NaN
  if (Number.isNaN(at))
    throw refused('INVALID_OPTION', field, 'is not an instant: give a Date or ISO 8601 such as 2026-01-28T17:00:00Z')
  return inCalendar(at, field)
}

const inCalendar = (at: Instant, field: string): Instant => {
  if (isInstant(at)) return at
  throw refused('INVALID_OPTION', field, 'is not an instant between the years 1 and 9999')
}

const NAME = /^[A-Za-z0-9_.:/-]{1,128}$/
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

export const checkName = (name: string, field: string, code: Code = 'INVALID_OPTION'): string => {
  if (typeof name === 'string' && NAME.test(name)) return name
  throw refused(code, field, `${quoted(name)} must be 1 to 128 characters of A-Z a-z 0-9 _ . : / -`)
}

export const checkId = (id: string): string => {
  const lower = typeof id === 'string' ? id.toLowerCase() : ''
  if (UUID.test(lower)) return lower
  throw refused('INVALID_TASK', 'id', `${quoted(id)} is not a UUID`)
}

/** For lists of ids: an invalid one gets an error of its own. */
export const checkedId = (id: string): string | { readonly id: string; readonly error: HoldfastError } => {
  try {
    return checkId(id)
  } catch (error) {
    if (error instanceof HoldfastError) return { id: String(id), error }
    throw error
  }
}

export const checkWorkerId = (workerId: string): string => {
  if (typeof workerId === 'string' && workerId.trim() !== '' && isPlainText(workerId, 256)) return workerId
  throw refused('INVALID_WORKER_ID', 'workerId', `${quoted(workerId)} must be text of 1 to 256 characters`)
}

const checkKey = (key: string): string => {
  if (!isPlainText(key, 512) || key === '')
    throw refused('INVALID_OPTION', 'idempotencyKey', 'must be well-formed text of 1 to 512 characters without NUL')
  if (RESERVED_KEY.test(key))
    throw refused(
      'INVALID_OPTION',
      'idempotencyKey',
      "must not begin with 'replay:', 'schedule:' or 'coalesce:', which Holdfast uses itself",
    )
  return key
}

export const checkGroup = (group: string): string => {
  if (isPlainText(group, 128) && group !== '') return group
  throw refused(
    'INVALID_OPTION',
    'group',
    `${quoted(group)} must be well-formed text of 1 to 128 characters without NUL`,
  )
}

const MAX_TAGS = 20

export const checkTags = (tags: Readonly<Record<string, string>>): Readonly<Record<string, string>> => {
  if (typeof tags !== 'object' || tags === null || Array.isArray(tags))
    throw refused('INVALID_OPTION', 'tags', 'must be an object of texts')
  const entries = Object.entries(tags)
  if (entries.length > MAX_TAGS)
    throw refused('INVALID_OPTION', 'tags', `has ${entries.length} entries; the limit is ${MAX_TAGS}`)
  for (const [name, value] of entries) {
    if (name === '' || !isPlainText(name, 64))
      throw refused('INVALID_OPTION', `tags.${name.slice(0, 64)}`, 'has a name that is not text of 1 to 64 characters')
    if (!isPlainText(value, 256))
      throw refused('INVALID_OPTION', `tags.${name}`, 'must be text of at most 256 characters')
  }
  return Object.fromEntries(entries)
}

export const isPlainText = (text: unknown, longest: number): boolean =>
  typeof text === 'string' && text.length <= longest && text.isWellFormed() && !text.includes('\0')

export const checkInteger = (value: number, field: string, least: number, most: number): number => {
  if (Number.isInteger(value) && value >= least && value <= most) return value
  throw refused('INVALID_OPTION', field, `must be a whole number from ${least} to ${most}`)
}

const quoted = (value: unknown): string =>
  typeof value === 'string'
    ? `'${value.length > 40 ? `${value.slice(0, 40)}…` : value}'`
    : `(a ${value === null ? 'null' : typeof value})`

const refused = (code: Code, field: string, why: string): HoldfastError =>
  new HoldfastError(code, `${field} ${why}`, { field })
