/** Claimed tasks on their way from the thread: numbers in one block and only the texts that differ, because copying is what costs. */
import type { TaskError, TaskRecord } from '../../core/task.ts'
import { decodeOptions, readJson, type Row } from './rows.ts'

/** Read before the claim is written, hence revision and attempts as they will be. */
const NUMBERS = ['key', 'priority', 'available_at', 'expires_at', 'created_at', 'revision + 1', 'attempts + 1', 'retry_count', 'reschedule_count', 'replay_count'] as const
const WIDTH = NUMBERS.length
/** Texts of a task that most have not. */
const RARE = 4
export const CLAIMED_COLUMNS = `${NUMBERS.join(', ')}, id, input, type, idempotency_key, last_error, options, replayed_as`

export interface Claimed {
  /** WIDTH per task; NaN stands for null. */
  readonly numbers: Float64Array
  /** Id and input of each task. */
  readonly texts: readonly string[]
  /** One for all, or one each. */
  readonly types: string | readonly string[]
  /** Key, last error, options and replayed-as of each task; null when no task has any. */
  readonly rare: readonly (string | null)[] | null
}

export const packClaimed = (rows: readonly Row[]): Claimed => {
  const numbers = new Float64Array(rows.length * WIDTH)
  const texts: string[] = []
  const types: string[] = []
  const rare: (string | null)[] = []
  let isPlain = true
  let isOneType = true
  for (const [i, row] of rows.entries()) {
    for (let n = 0; n < WIDTH; n++) numbers[i * WIDTH + n] = (row[n] as number | null) ?? Number.NaN
    texts.push(row[WIDTH] as string, row[WIDTH + 1] as string)
    types.push(row[WIDTH + 2] as string)
    isOneType &&= row[WIDTH + 2] === types[0]
    const key = row[WIDTH + 3] as string | null
    const lastError = row[WIDTH + 4] as string | null
    const options = row[WIDTH + 5] as string | null
    const replayedAs = row[WIDTH + 6] as string | null
    rare.push(key, lastError, options, replayedAs)
    isPlain &&= key === null && lastError === null && options === null && replayedAs === null
  }
  return { numbers, texts, types: isOneType ? types[0]! : types, rare: isPlain ? null : rare }
}

export interface ClaimedWith {
  readonly queue: string
  readonly workerId: string
  readonly op: string
  readonly leaseTtl: number
  readonly now: number
}

export const unpackClaimed = (claimed: Claimed | null, facts: ClaimedWith): TaskRecord[] => {
  if (claimed === null) return []
  const tasks: TaskRecord[] = []
  for (let i = 0; i * WIDTH < claimed.numbers.length; i++) tasks.push(unpackOne(claimed, i, facts))
  return tasks
}

const unpackOne = ({ numbers, texts, types, rare }: Claimed, i: number, { queue, workerId, op, leaseTtl, now }: ClaimedWith): TaskRecord => {
  const at = i * WIDTH
  const key = numbers[at]!
  const expiresAt = numbers[at + 3]!
  const lastError = rare === null ? null : rare[i * RARE + 1]!
  const options = decodeOptions(rare === null ? null : rare[i * RARE + 2]!)
  return {
    id: texts[i * 2]!,
    queue,
    type: typeof types === 'string' ? types : types[i]!,
    input: texts[i * 2 + 1]!,
    encoding: options.encoding,
    output: null,
    outputEncoding: 'json',
    status: 'running',
    priority: numbers[at + 1]!,
    availableAt: numbers[at + 2]!,
    expiresAt: Number.isNaN(expiresAt) ? null : expiresAt,
    expiredAt: null,
    idempotencyKey: rare === null ? null : rare[i * RARE]!,
    attempts: numbers[at + 6]!,
    retryCount: numbers[at + 7]!,
    maxRetries: options.maxRetries,
    rescheduleCount: numbers[at + 8]!,
    maxReschedules: options.maxReschedules,
    replayCount: numbers[at + 9]!,
    replayedAs: rare === null ? null : rare[i * RARE + 3]!,
    replayOf: options.replayOf,
    retryPolicy: options.retryPolicy,
    timeout: options.timeout,
    lease: { token: `${op}.${key}`, workerId, claimedAt: now, expiresAt: now + leaseTtl },
    cancelRequestedAt: null,
    lastError: readJson<TaskError | null>(lastError, null),
    progress: null,
    createdAt: numbers[at + 4]!,
    updatedAt: now,
    startedAt: now,
    completedAt: null,
    archivedFrom: null,
    scheduleId: options.scheduleId,
    tags: options.tags,
    revision: numbers[at + 5]!,
    history: [],
    // The row's own key: the commit that ends this claim finds it without the index on id.
    mark: key,
  }
}
