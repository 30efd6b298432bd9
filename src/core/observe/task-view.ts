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
  /** A UUID; made by the client as UUIDv7, so that ids sort by creation. */
  readonly id: string
  /** The queue that it was submitted to. It never changes. */
  readonly queue: string
  /** Which handler runs it. */
  readonly type: string
  /** pending, running, completed, failed, cancelled, expired or archived. */
  readonly status: TaskStatus
  /** -1000 to 1000, higher first. */
  readonly priority: number
  /** Whose work it is: limits and turns go by it. null: nobody's in particular. */
  readonly group: string | null
  /** How the input is stored: as JSON, or as base64 where it is bytes. */
  readonly encoding: Encoding
  /** Not claimable before this instant. */
  readonly availableAt: Instant
  /** Expires then unless it was claimed; null: never. */
  readonly expiresAt: Instant | null
  /** When it was marked expired; null if it was not. */
  readonly expiredAt: Instant | null
  /** The key that it was submitted with. */
  readonly idempotencyKey: string | null
  /** How often it was claimed. It never decreases: it is the fence. */
  readonly attempts: number
  /** Retries used. A replay sets it back to 0. */
  readonly retryCount: number
  /** Retries after the first run; null: unlimited. */
  readonly maxRetries: number | null
  /** Durable sleeps so far. A replay sets it back to 0. */
  readonly rescheduleCount: number
  /** null: unlimited. */
  readonly maxReschedules: number | null
  /** How often it was replayed from the dead letters. */
  readonly replayCount: number
  /** The id of the task that replaced it, after a replay as a new task. */
  readonly replayedAs: string | null
  /** The id of the dead letter that it replaces. */
  readonly replayOf: string | null
  /** Limit on one run in milliseconds; null: none. */
  readonly timeout: number | null
  /** A running task was asked to stop then; null if it was not. */
  readonly cancelRequestedAt: Instant | null
  /** The error of the latest failed run. It stays when a later run succeeds. */
  readonly lastError: TaskError | null
  /** When it was submitted. */
  readonly createdAt: Instant
  /** When it last moved. Renewals of a lease and progress are no moves. */
  readonly updatedAt: Instant
  /** When its latest run began; null before the first. */
  readonly startedAt: Instant | null
  /** When it ended, in whatever status; null until then. */
  readonly completedAt: Instant | null
  /** The status that it had before it was archived. */
  readonly archivedFrom: TaskStatus | null
  /** The schedule that created it. */
  readonly scheduleId: string | null
  /** 1 when it is submitted, one more with every move. */
  readonly revision: number
  /** Empty on the task that a handler gets; `client.history(id)` reads it. */
  readonly history: readonly HistoryEntry[]
  /** Why a completed task has no output, or why its schema rejects the output. */
  readonly outputError: string | null
  /** What its handler waits for; null while it is not parked. */
  readonly parked: Parked | null
  /** How often a replay has forgotten its steps. */
  readonly generation: number
  /** Empty if it has none. */
  readonly tags: Readonly<Record<string, string>>
  /** The policy in force, also where the default applies. */
  readonly retryPolicy: RetryPolicy
  /** Who runs it and until when; null unless it is running. */
  readonly lease: ShownLease | null
  /** What was submitted, before any schema parsed it. */
  declare readonly input: Input
  /** What the handler returned; null until it has completed. */
  declare readonly output: Output | null
  /** The last value that a handler reported in its latest run; null if none. */
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

  /** True if nobody may claim it any more at this instant, whether it has been marked or not. */
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

  /** As plain data, with instants as ISO 8601. */
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
