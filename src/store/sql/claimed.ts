/** Builds a newly leased task from the few columns that differ from task to task. */
import type { TaskError, TaskRecord } from '../../core/task.ts'
import { type Cell, decodeOptions, readJson } from './rows.ts'

/** Preceded in each row by the lease token, or by a number that is unique in the claim and forms the token with the op. */
export const CLAIMED_NUMBERS = [
  'priority',
  'available_at',
  'expires_at',
  'created_at',
  'revision',
  'attempts',
  'retry_count',
  'reschedule_count',
  'replay_count',
] as const
export const CLAIMED_TEXTS = [
  'id',
  'input',
  'type',
  'idempotency_key',
  'last_error',
  'options',
  'replayed_as',
  'task_group',
] as const

/** The token or number, CLAIMED_NUMBERS, CLAIMED_TEXTS. */
export type ClaimedRow = Cell[]

export interface ClaimedWith {
  readonly queue: string
  readonly workerId: string
  readonly op: string
  readonly leaseTtl: number
  readonly now: number
}

export const decodeClaimed = (row: ClaimedRow, { queue, workerId, op, leaseTtl, now }: ClaimedWith): TaskRecord => {
  const options = decodeOptions(row[15]!)
  const token = typeof row[0] === 'string' ? row[0] : `${op}.${row[0]}`
  return {
    id: row[10] as string,
    queue,
    type: row[12] as string,
    input: row[11] as string,
    encoding: options.encoding,
    output: null,
    outputEncoding: 'json',
    outputError: null,
    status: 'running',
    priority: row[1] as number,
    group: row[17] as string | null,
    availableAt: row[2] as number,
    expiresAt: row[3] as number | null,
    expiredAt: null,
    idempotencyKey: row[13] as string | null,
    attempts: row[6] as number,
    retryCount: row[7] as number,
    maxRetries: options.maxRetries,
    rescheduleCount: row[8] as number,
    maxReschedules: options.maxReschedules,
    replayCount: row[9] as number,
    replayedAs: row[16] as string | null,
    replayOf: options.replayOf,
    retryPolicy: options.retryPolicy,
    timeout: options.timeout,
    lease: { token, workerId, claimedAt: now, expiresAt: now + leaseTtl, ttl: leaseTtl },
    cancelRequestedAt: null,
    lastError: readJson<TaskError | null>(row[14]!, null),
    progress: null,
    createdAt: row[4] as number,
    updatedAt: now,
    startedAt: now,
    completedAt: null,
    archivedFrom: null,
    scheduleId: options.scheduleId,
    tags: options.tags,
    parked: null,
    generation: options.generation,
    hasJournal: options.hasJournal,
    journal: [],
    revision: row[5] as number,
    history: [],
    // On SQLite the row's key, by which the commit finds the row without the index on id. On PostgreSQL the token, so that
    // an entry with this op need not send it again.
    mark: row[0],
  }
}
