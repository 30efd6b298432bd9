/** A task as an application sees it: a snapshot of the record, with payloads parsed on first access. */
import { deadlineOf, isExpiredAt } from '../guards.ts'
import { type ShownSignal, type ShownStep, shownSignals, shownSteps } from '../steps/journal.ts'
import { STORED_DEFAULTS } from '../storage/stored-defaults.ts'
import type {
  Encoding,
  HistoryEntry,
  Instant,
  Lease,
  Parked,
  RetryPolicy,
  TaskError,
  TaskRecord,
  TaskStatus,
} from '../task.ts'
import { decodePayload } from '../values/payload.ts'
import { type View, viewOf } from '../views.ts'
import { type TimelineEntry, timelineOf } from './timeline.ts'

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
  'until',
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
  /** What its handler waits for; null while it is not parked. */
  readonly parked: Parked | null
  /** How often a replay has forgotten its steps. */
  readonly generation: number
  readonly tags: Readonly<Record<string, string>>
  readonly retryPolicy: RetryPolicy
  readonly lease: ShownLease | null
  declare readonly input: Input
  declare readonly output: Output | null
  declare readonly progress: unknown
  /** Its recorded steps, sleeps and waits. Empty on a task from a list, and on the task that a handler gets: see `ctx.steps`. */
  declare readonly steps: readonly ShownStep[]
  /** Signals that no step has taken. Empty on a task from a list. */
  declare readonly signals: readonly ShownSignal[]
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
    this.parked = record.parked
    this.generation = record.generation
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
    steps: {
      enumerable: true,
      get() {
        return shownSteps(this.#record)
      },
    },
    signals: {
      enumerable: true,
      get() {
        return shownSignals(this.#record)
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

  /** Its history merged by time with its steps and signals. Like these, it is empty on a task from a list. */
  timeline(): readonly TimelineEntry[] {
    return timelineOf(this.#record)
  }

  /** Makes `console.log(task)` show the fields. */
  [Symbol.for('nodejs.util.inspect.custom')](): Record<string, unknown> {
    return this.toJSON()
  }

  toJSON(): Record<string, unknown> {
    return this.#shown({ input: this.input, output: this.output, progress: this.progress })
  }

  /** As JSON, with null for the payloads, which are not parsed. A short progress is shown. */
  summary(): Record<string, unknown> {
    const isShort = (this.#record.progress?.length ?? 0) <= SHORT
    return this.#shown({ input: null, output: null, progress: isShort ? this.progress : null })
  }

  #shown(payloads: Record<'input' | 'output' | 'progress', unknown>): Record<string, unknown> {
    const { mark: _, outputEncoding: __, hasJournal: ___, journal: ____, ...record } = this.#record
    return withIsoInstants({
      ...record,
      ...payloads,
      lease: this.lease,
      tags: this.tags,
      retryPolicy: this.retryPolicy,
      steps: this.steps,
      signals: this.signals,
      ...(this.deduplicated ? { deduplicated: true } : null),
      ...(this.coalesced ? { coalesced: true } : null),
    }) as Record<string, unknown>
  }
}

/** Characters of a progress that a summary shows. */
const SHORT = 1_000

const PAYLOADS: ReadonlySet<string> = new Set(['input', 'output', 'progress', 'tags', 'value'])

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
