/** A task as an application sees it: the record at one moment, with its payloads parsed when they are first looked at. */
import { isExpiredAt } from './machine.ts'
import { decodePayload } from './payload.ts'
import { DEFAULT_RETRY_POLICY } from './retry.ts'
import type { Encoding, HistoryEntry, Instant, Lease, RetryPolicy, TaskError, TaskRecord, TaskStatus } from './task.ts'
import { type View, viewOf } from './views.ts'

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
  'at',
])

/** Instants are milliseconds here and ISO 8601 in JSON. Its fields never change: `client.get(id)` reads anew. */
export class Task<Input = unknown, Output = unknown> {
  /** True when submit found this task under the idempotency key instead of making it. */
  readonly deduplicated: boolean
  readonly #record: TaskRecord
  #input: { readonly value: Input } | undefined
  #output: { readonly value: Output | null } | undefined

  constructor(record: TaskRecord, deduplicated = false) {
    this.#record = record
    this.deduplicated = deduplicated
  }

  get id(): string {
    return this.#record.id
  }
  get queue(): string {
    return this.#record.queue
  }
  get type(): string {
    return this.#record.type
  }
  get status(): TaskStatus {
    return this.#record.status
  }
  get priority(): number {
    return this.#record.priority
  }
  get encoding(): Encoding {
    return this.#record.encoding
  }
  get availableAt(): Instant {
    return this.#record.availableAt
  }
  get expiresAt(): Instant | null {
    return this.#record.expiresAt
  }
  get expiredAt(): Instant | null {
    return this.#record.expiredAt
  }
  get idempotencyKey(): string | null {
    return this.#record.idempotencyKey
  }
  get attempts(): number {
    return this.#record.attempts
  }
  get retryCount(): number {
    return this.#record.retryCount
  }
  get maxRetries(): number | null {
    return this.#record.maxRetries
  }
  get rescheduleCount(): number {
    return this.#record.rescheduleCount
  }
  get maxReschedules(): number | null {
    return this.#record.maxReschedules
  }
  get replayCount(): number {
    return this.#record.replayCount
  }
  get replayedAs(): string | null {
    return this.#record.replayedAs
  }
  get replayOf(): string | null {
    return this.#record.replayOf
  }
  get retryPolicy(): RetryPolicy {
    return this.#record.retryPolicy ?? DEFAULT_RETRY_POLICY
  }
  get timeout(): number | null {
    return this.#record.timeout
  }
  get lease(): Lease | null {
    return this.#record.lease
  }
  get cancelRequestedAt(): Instant | null {
    return this.#record.cancelRequestedAt
  }
  get lastError(): TaskError | null {
    return this.#record.lastError
  }
  get createdAt(): Instant {
    return this.#record.createdAt
  }
  get updatedAt(): Instant {
    return this.#record.updatedAt
  }
  get startedAt(): Instant | null {
    return this.#record.startedAt
  }
  get completedAt(): Instant | null {
    return this.#record.completedAt
  }
  get archivedFrom(): TaskStatus | null {
    return this.#record.archivedFrom
  }
  get scheduleId(): string | null {
    return this.#record.scheduleId
  }
  get tags(): Readonly<Record<string, string>> {
    return this.#record.tags ?? {}
  }
  get revision(): number {
    return this.#record.revision
  }
  /** Empty on the task that a handler is given; `client.history(id)` reads it. */
  get history(): readonly HistoryEntry[] {
    return this.#record.history
  }

  get input(): Input {
    this.#input ??= { value: decodePayload(this.#record.input, this.#record.encoding) as Input }
    return this.#input.value
  }

  get output(): Output | null {
    this.#output ??= {
      value:
        this.#record.output === null
          ? null
          : (decodePayload(this.#record.output, this.#record.outputEncoding) as Output),
    }
    return this.#output.value
  }

  get progress(): unknown {
    return this.#record.progress === null ? null : JSON.parse(this.#record.progress)
  }

  isExpiredAt(instant: Instant): boolean {
    return isExpiredAt(this.#record, instant)
  }

  /** The most telling name for this task at `now`: ready, scheduled, retrying, running, dead, … */
  viewAt(now: Instant): View {
    return viewOf(this.#record, now)
  }

  toJSON(): Record<string, unknown> {
    const { input, output, progress, tags, retryPolicy, mark: _, outputEncoding: __, ...rest } = this.#record
    const shown = {
      ...rest,
      input: this.input,
      output: this.output,
      progress: this.progress,
      tags: this.tags,
      retryPolicy: this.retryPolicy,
    }
    return withIsoInstants({ ...shown, ...(this.deduplicated ? { deduplicated: true } : null) }) as Record<
      string,
      unknown
    >
  }
}

const PAYLOADS: ReadonlySet<string> = new Set(['input', 'output', 'progress', 'tags'])

/** The same value with ISO 8601 for instants; the user's own payloads are left as they are, bytes in base64. */
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
