/** A task as an application sees it: a snapshot of the record, with payloads parsed on first access. */
import { deadlineOf, isExpiredAt } from './guards.ts'
import { decodePayload } from './payload.ts'
import { STORED_DEFAULTS } from './stored-defaults.ts'
import type { Encoding, HistoryEntry, Instant, Lease, RetryPolicy, TaskError, TaskRecord, TaskStatus } from './task.ts'
import { type View, viewOf } from './views.ts'

export interface ShownLease extends Lease {
  /** The latest end of the run, however often its lease is renewed; null without a timeout. */
  readonly deadline: Instant | null
}

const INSTANTS: ReadonlySet<string> = new Set([
  'availableAt',
  'expiresAt',
  'expiredAt',
  'cancelRequestedAt',
  'createdAt',
  'updatedAt',
  'startedAt',
  'completedAt',
  'claimedAt',
  'deadline',
  'at',
])

/** Instants are milliseconds here and ISO 8601 in JSON. Its fields never change: `client.get(id)` reads the current state. */
export class Task<Input = unknown, Output = unknown> {
  readonly id: string
  readonly queue: string
  readonly type: string
  readonly status: TaskStatus
  readonly priority: number
  readonly group: string | null
  readonly encoding: Encoding
  readonly availableAt: Instant
  readonly expiresAt: Instant | null
  readonly expiredAt: Instant | null
  readonly idempotencyKey: string | null
  readonly attempts: number
  readonly retryCount: number
  readonly maxRetries: number | null
  readonly rescheduleCount: number
  readonly maxReschedules: number | null
  readonly replayCount: number
  readonly replayedAs: string | null
  readonly replayOf: string | null
  readonly timeout: number | null
  readonly cancelRequestedAt: Instant | null
  readonly lastError: TaskError | null
  readonly createdAt: Instant
  readonly updatedAt: Instant
  readonly startedAt: Instant | null
  readonly completedAt: Instant | null
  readonly archivedFrom: TaskStatus | null
  readonly scheduleId: string | null
  readonly revision: number
  /** Empty on the task that a handler gets; `client.history(id)` reads it. */
  readonly history: readonly HistoryEntry[]
  /** Why a completed task has no output, or why its schema rejects the output. */
  readonly outputError: string | null
  readonly tags: Readonly<Record<string, string>>
  readonly retryPolicy: RetryPolicy
  readonly lease: ShownLease | null
  declare readonly input: Input
  declare readonly output: Output | null
  declare readonly progress: unknown
  /** True if submit found this task under the idempotency key instead of creating it. */
  readonly deduplicated: boolean
  /** True if submit changed this task, which waited under the coalesce key, instead of creating one. */
  readonly coalesced: boolean
  readonly #record: TaskRecord
  #input: { readonly value: unknown } | undefined
  #output: { readonly value: unknown } | undefined

  /** Its fields are its own, so that `{ ...task }` has them. */
  constructor(record: TaskRecord, deduplicated = false, coalesced = false) {
    this.#record = record
    this.id = record.id
    this.queue = record.queue
    this.type = record.type
    this.status = record.status
    this.priority = record.priority
    this.group = record.group
    this.encoding = record.encoding
    this.availableAt = record.availableAt
    this.expiresAt = record.expiresAt
    this.expiredAt = record.expiredAt
    this.idempotencyKey = record.idempotencyKey
    this.attempts = record.attempts
    this.retryCount = record.retryCount
    this.maxRetries = record.maxRetries
    this.rescheduleCount = record.rescheduleCount
    this.maxReschedules = record.maxReschedules
    this.replayCount = record.replayCount
    this.replayedAs = record.replayedAs
    this.replayOf = record.replayOf
    this.timeout = record.timeout
    this.cancelRequestedAt = record.cancelRequestedAt
    this.lastError = record.lastError
    this.createdAt = record.createdAt
    this.updatedAt = record.updatedAt
    this.startedAt = record.startedAt
    this.completedAt = record.completedAt
    this.archivedFrom = record.archivedFrom
    this.scheduleId = record.scheduleId
    this.revision = record.revision
    this.history = record.history
    this.outputError = record.outputError
    this.tags = record.tags ?? {}
    this.retryPolicy = record.retryPolicy ?? STORED_DEFAULTS.retryPolicy
    this.lease = record.lease === null ? null : { ...record.lease, deadline: deadlineOf(record) }
    this.deduplicated = deduplicated
    this.coalesced = coalesced
    Object.defineProperties(this, Task.#payloads)
  }

  /** The same task with the input that a schema has made of the stored one. */
  static withInput(record: TaskRecord, input: unknown): Task {
    const task = new Task(record)
    task.#input = { value: input }
    return task
  }

  /** Parsed on first access: a payload may be large, and most are never read. */
  static readonly #payloads: PropertyDescriptorMap & ThisType<Task> = {
    input: {
      enumerable: true,
      get() {
        const { input, encoding } = this.#record
        this.#input ??= { value: decodePayload(input, encoding) }
        return this.#input.value
      },
    },
    output: {
      enumerable: true,
      get() {
        const { output, outputEncoding } = this.#record
        this.#output ??= { value: output === null ? null : decodePayload(output, outputEncoding) }
        return this.#output.value
      },
    },
    progress: {
      enumerable: true,
      get() {
        return this.#record.progress === null ? null : JSON.parse(this.#record.progress)
      },
    },
  }

  isExpiredAt(instant: Instant): boolean {
    return isExpiredAt(this.#record, instant)
  }

  /** The most specific state of this task at `now`: ready, scheduled, retrying, running, dead, … */
  viewAt(now: Instant): View {
    return viewOf(this.#record, now)
  }

  /** Makes `console.log(task)` show the fields. */
  [Symbol.for('nodejs.util.inspect.custom')](): Record<string, unknown> {
    return this.toJSON()
  }

  toJSON(): Record<string, unknown> {
    const { input, output, progress, tags, retryPolicy, mark: _, outputEncoding: __, ...rest } = this.#record
    const shown = {
      ...rest,
      lease: this.lease,
      input: this.input,
      output: this.output,
      progress: this.progress,
      tags: this.tags,
      retryPolicy: this.retryPolicy,
    }
    return withIsoInstants({
      ...shown,
      ...(this.deduplicated ? { deduplicated: true } : null),
      ...(this.coalesced ? { coalesced: true } : null),
    }) as Record<string, unknown>
  }
}

const PAYLOADS: ReadonlySet<string> = new Set(['input', 'output', 'progress', 'tags'])

/** The same value with instants in ISO 8601; payloads are unchanged, bytes are base64. */
const withIsoInstants = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(withIsoInstants)
  if (typeof value !== 'object' || value === null) return value
  const shown: Record<string, unknown> = {}
  for (const [name, inner] of Object.entries(value)) {
    if (PAYLOADS.has(name)) shown[name] = inner instanceof Uint8Array ? Buffer.from(inner).toString('base64') : inner
    else if (INSTANTS.has(name) && typeof inner === 'number') shown[name] = new Date(inner).toISOString()
    else shown[name] = withIsoInstants(inner)
  }
  return shown
}
