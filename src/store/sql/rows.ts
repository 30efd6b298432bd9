/** Converts tasks to rows and back. The only place that knows which column holds which field, for all SQL stores. */
import { STORED_DEFAULTS } from '../../core/storage/stored-defaults.ts'
import type {
  ChangeSet,
  Encoding,
  HistoryEntry,
  JournalEntry,
  Parked,
  RetryPolicy,
  TaskError,
  TaskRecord,
  TaskStatus,
} from '../../core/task.ts'
import { keptHistory } from '../../core/task.ts'

export type Cell = string | number | null
export type Row = Cell[]

interface Options {
  encoding?: Encoding
  maxRetries?: number | null
  maxReschedules?: number
  retryPolicy?: RetryPolicy
  timeout?: number | null
  tags?: Readonly<Record<string, string>>
  replayOf?: string
  scheduleId?: string
  outputError?: string
  generation?: number
  hasJournal?: boolean
}

const encodeOptions = (task: TaskRecord): string | null => {
  const options: Options = {}
  if (task.encoding !== 'json') options.encoding = task.encoding
  if (task.maxRetries !== STORED_DEFAULTS.maxRetries) options.maxRetries = task.maxRetries
  if (task.maxReschedules !== null) options.maxReschedules = task.maxReschedules
  if (task.retryPolicy !== null) options.retryPolicy = task.retryPolicy
  if (task.timeout !== STORED_DEFAULTS.timeout) options.timeout = task.timeout
  if (task.tags !== null) options.tags = task.tags
  if (task.replayOf !== null) options.replayOf = task.replayOf
  if (task.scheduleId !== null) options.scheduleId = task.scheduleId
  if (task.outputError !== null) options.outputError = task.outputError
  if (task.generation !== 0) options.generation = task.generation
  if (task.hasJournal) options.hasJournal = true
  for (const _ in options) return JSON.stringify(options)
  return null
}

type DecodedOptions = Pick<
  TaskRecord,
  | 'encoding'
  | 'maxRetries'
  | 'maxReschedules'
  | 'retryPolicy'
  | 'timeout'
  | 'tags'
  | 'replayOf'
  | 'scheduleId'
  | 'outputError'
  | 'generation'
  | 'hasJournal'
>

const fillOptions = (options: Options): DecodedOptions => ({
  encoding: options.encoding ?? 'json',
  maxRetries: options.maxRetries === undefined ? STORED_DEFAULTS.maxRetries : options.maxRetries,
  maxReschedules: options.maxReschedules ?? null,
  retryPolicy: options.retryPolicy ?? null,
  timeout: options.timeout === undefined ? STORED_DEFAULTS.timeout : options.timeout,
  tags: options.tags ?? null,
  replayOf: options.replayOf ?? null,
  scheduleId: options.scheduleId ?? null,
  outputError: options.outputError ?? null,
  generation: options.generation ?? 0,
  hasJournal: options.hasJournal ?? false,
})

const DEFAULT_OPTIONS = fillOptions({})

export const decodeOptions = (text: Cell): DecodedOptions =>
  text === null ? DEFAULT_OPTIONS : fillOptions(readJson<Options>(text, {}))

const encodeHistory = (history: readonly HistoryEntry[]): string =>
  history.length === 1 ? encodeFirst(history[0]!) : history.map((entry) => JSON.stringify(entry)).join(',')

let lastFirst: { readonly entry: HistoryEntry; readonly text: string } | null = null

/** Tasks that are submitted together have the same first entry, which is encoded once. */
const encodeFirst = (entry: HistoryEntry): string => {
  if (lastFirst === null || !isSameEntry(lastFirst.entry, entry)) lastFirst = { entry, text: JSON.stringify(entry) }
  return lastFirst.text
}

/** Compares all fields but `except`. */
export const isSameEntry = (a: HistoryEntry, b: HistoryEntry, except?: keyof HistoryEntry): boolean => {
  for (const name in a) if (name !== except && a[name as 'at'] !== b[name as 'at']) return false
  for (const name in b) if (!(name in a)) return false
  return true
}

/** Texts that JSON writes unescaped: such a token can be put into an entry as it is. */
const PLAIN = /^[\w.,:/()-]*$/

export const isPlain = (text: string): boolean => PLAIN.test(text)

/** An entry up to its op, which is the row's lease token. Without it, the endings of one turn are the same text. */
export const entryBeforeOp = ({ op: _, ...facts }: HistoryEntry): string =>
  `,${JSON.stringify(facts).slice(0, -1)},"op":"`

/** A value that cannot be parsed counts as missing, so that a damaged row does not hide all others. */
export const readJson = <T>(text: Cell, fallback: T): T => {
  if (text === null) return fallback
  try {
    return JSON.parse(text as string) as T
  } catch {
    return fallback
  }
}

const decodeHistory = (text: Cell): readonly HistoryEntry[] =>
  text === null ? [] : keptHistory(readJson<HistoryEntry[]>(`[${text}]`, []))

/** Cuts the stored text of a long history to the kept length. */
export const trimHistory = (text: string): string => encodeHistory(decodeHistory(text)) || text

const jsonOrNull = (value: object | null): string | null => (value === null ? null : JSON.stringify(value))

// ── inserting ────────────────────────────────────────────────────────────────────────────────────────────────────

/** The columns with which every row begins. */
const HEAD =
  'id, queue, type, priority, available_at, expires_at, created_at, updated_at, idempotency_key, options, input'

const encodeHead = (task: TaskRecord): Cell[] => [
  task.id,
  task.queue,
  task.type,
  task.priority,
  task.availableAt,
  task.expiresAt,
  task.createdAt,
  task.updatedAt,
  task.idempotencyKey,
  encodeOptions(task),
  task.input,
]

/** The columns of a new task. All others have their default. */
export const FRESH_COLUMNS = `${HEAD}, task_group, history`

/** Checks every field, because a task from another store may have revision 1 and yet a past. */
export const isFresh = (task: TaskRecord): boolean =>
  task.status === 'pending' &&
  task.revision === 1 &&
  task.attempts === 0 &&
  task.retryCount === 0 &&
  task.rescheduleCount === 0 &&
  task.replayCount === 0 &&
  task.lease === null &&
  task.cancelRequestedAt === null &&
  task.startedAt === null &&
  task.completedAt === null &&
  task.expiredAt === null &&
  task.archivedFrom === null &&
  task.replayedAs === null &&
  task.lastError === null &&
  task.progress === null &&
  task.output === null &&
  task.outputEncoding === 'json' &&
  task.parked === null &&
  !task.hasJournal

export const encodeFresh = (task: TaskRecord): Row => {
  const row = encodeHead(task)
  row.push(task.group, encodeHistory(task.history))
  return row
}

/** All columns but the history, in the order of rows. */
export const COLUMNS =
  `${HEAD}, ` +
  'status, revision, attempts, retry_count, reschedule_count, replay_count, ' +
  'lease_token, lease_worker, lease_claimed_at, lease_expires_at, cancel_requested_at, started_at, completed_at, expired_at, ' +
  'archived_from, replayed_as, last_error, progress, output, output_encoding, lease_ttl, task_group, parked, parked_revision'
export const COLUMNS_WITH_HISTORY = `${COLUMNS}, history`

export const encodeWhole = (task: TaskRecord): Row => [
  ...encodeHead(task),
  task.status,
  task.revision,
  task.attempts,
  task.retryCount,
  task.rescheduleCount,
  task.replayCount,
  task.lease?.token ?? null,
  task.lease?.workerId ?? null,
  task.lease?.claimedAt ?? null,
  task.lease?.expiresAt ?? null,
  task.cancelRequestedAt,
  task.startedAt,
  task.completedAt,
  task.expiredAt,
  task.archivedFrom,
  task.replayedAs,
  jsonOrNull(task.lastError),
  task.progress,
  task.output,
  task.outputEncoding,
  task.lease?.ttl ?? null,
  task.group,
  jsonOrNull(task.parked),
  task.parked === null ? null : task.revision,
  encodeHistory(task.history),
]

export const decodeWhole = (row: Row): TaskRecord => ({
  id: row[0] as string,
  queue: row[1] as string,
  type: row[2] as string,
  priority: row[3] as number,
  availableAt: row[4] as number,
  expiresAt: row[5] as number | null,
  createdAt: row[6] as number,
  updatedAt: row[7] as number,
  idempotencyKey: row[8] as string | null,
  ...decodeOptions(row[9]!),
  input: row[10] as string,
  status: row[11] as TaskStatus,
  revision: row[12] as number,
  attempts: row[13] as number,
  retryCount: row[14] as number,
  rescheduleCount: row[15] as number,
  replayCount: row[16] as number,
  lease:
    row[17] === null
      ? null
      : {
          token: row[17] as string,
          workerId: row[18] as string,
          claimedAt: row[19] as number,
          expiresAt: row[20] as number,
          // Claimed by a release that did not store it.
          ttl: (row[31] as number | null) ?? (row[20] as number) - (row[19] as number),
        },
  cancelRequestedAt: row[21] as number | null,
  startedAt: row[22] as number | null,
  completedAt: row[23] as number | null,
  expiredAt: row[24] as number | null,
  archivedFrom: row[25] as TaskStatus | null,
  replayedAs: row[26] as string | null,
  lastError: readJson<TaskError | null>(row[27]!, null),
  progress: row[28] as string | null,
  output: row[29] as string | null,
  outputEncoding: row[30] as Encoding,
  group: row[32] as string | null,
  // A later move leaves it in the row.
  parked: row[34] === row[12] ? readJson<Parked | null>(row[33]!, null) : null,
  history: decodeHistory(row[35] ?? null),
  journal: decodeJournal(row[JOURNAL_AT] ?? null),
})

/** Behind the columns, where the entries of the journal were read with them, with commas between. */
const JOURNAL_AT = 36

const decodeJournal = (text: Cell): readonly JournalEntry[] =>
  text === null ? [] : readJson<JournalEntry[]>(`[${text}]`, [])

/** A row whose task has no journal does not contain this text, which saves reading its options. */
export const JOURNAL_MARK = 'hasJournal'

// ── changing ─────────────────────────────────────────────────────────────────────────────────────────────────────

type Field = keyof ChangeSet

const COLUMN: Readonly<Partial<Record<Field, string>>> = {
  type: 'type',
  input: 'input',
  output: 'output',
  outputEncoding: 'output_encoding',
  status: 'status',
  priority: 'priority',
  group: 'task_group',
  availableAt: 'available_at',
  expiresAt: 'expires_at',
  expiredAt: 'expired_at',
  attempts: 'attempts',
  retryCount: 'retry_count',
  rescheduleCount: 'reschedule_count',
  replayCount: 'replay_count',
  replayedAs: 'replayed_as',
  cancelRequestedAt: 'cancel_requested_at',
  lastError: 'last_error',
  progress: 'progress',
  updatedAt: 'updated_at',
  startedAt: 'started_at',
  completedAt: 'completed_at',
  archivedFrom: 'archived_from',
  parked: 'parked',
  // Stored in the column `options`: see assignmentsOf. The names are those of their bound values.
  tags: 'option_tags',
  outputError: 'option_output_error',
  encoding: 'option_encoding',
  generation: 'option_generation',
  hasJournal: 'option_has_journal',
}

/** Bound last, because a single assignment to `options` uses them all. */
const OPTION_FIELDS = ['tags', 'outputError', 'encoding', 'generation', 'hasJournal'] as const

const isOption = (field: string): boolean => (OPTION_FIELDS as readonly string[]).includes(field)

const LEASE_COLUMNS = ['lease_token', 'lease_worker', 'lease_claimed_at', 'lease_expires_at', 'lease_ttl'] as const

/** The columns that a set of fields binds, in the order of `pushValues`. A cleared lease binds none. */
export const changedColumns = (set: ChangeSet): string[] => {
  const columns: string[] = []
  for (const field in set) {
    if (field === 'lease') columns.push(...(set.lease ? LEASE_COLUMNS : []))
    else if (!isOption(field)) columns.push(COLUMN[field as Field]!)
  }
  for (const field of OPTION_FIELDS) if (field in set) columns.push(COLUMN[field]!)
  return columns
}

/** Equal for equal fields; used as the cache key of a statement. */
export const shapeOf = (set: ChangeSet): string => {
  let shape = ''
  for (const field in set) shape += field === 'lease' && set.lease === null ? '-lease' : `,${field}`
  return shape
}

/**
 * The assignments of a set of fields, with `bound(column)` for each bound value. `withOption` is the store's way to put a value,
 * bound as JSON, into options; `revision` is how its statement names the revision before.
 */
export const assignmentsOf = (
  set: ChangeSet,
  bound: (column: string) => string,
  withOption: (options: string, name: string, json: string) => string,
  revision = 'revision',
): string => {
  const options = OPTION_FIELDS.filter((field) => field in set)
  const parts = changedColumns(set)
    .slice(0, options.length === 0 ? undefined : -options.length)
    .map((column) => `${column} = ${bound(column)}`)
  if (options.length > 0)
    parts.push(
      `options = ${options.reduce((text, field) => withOption(text, field, bound(COLUMN[field]!)), 'options')}`,
    )
  if (set.lease === null) parts.push(...LEASE_COLUMNS.map((column) => `${column} = null`))
  if (set.parked) parts.push(`parked_revision = ${revision} + 1`)
  return parts.join(', ')
}

/** Adds the values for `changedColumns(set)`, in its order. */
export const pushValues = (row: Row, set: ChangeSet): void => {
  for (const field in set) {
    if (field === 'lease') {
      if (set.lease) {
        const { token, workerId, claimedAt, expiresAt, ttl } = set.lease
        row.push(token, workerId, claimedAt, expiresAt, ttl)
      }
    } else if (field === 'lastError' || field === 'parked') row.push(jsonOrNull(set[field] ?? null))
    else if (!isOption(field)) row.push(set[field as Field] as Cell)
  }
  for (const field of OPTION_FIELDS) if (field in set) row.push(JSON.stringify(set[field] ?? null))
}

const HEAVY = ['input', 'output', 'progress'].map((column) => COLUMNS.split(', ').indexOf(column))

/** The weight of a row with COLUMNS, equal to weightOf of its task; and of its journal, if it is there. */
export const weightOfRow = (row: Row): number => {
  let weight = 0
  for (const at of HEAVY) weight += (row[at] as string | null)?.length ?? 0
  return weight + ((row[JOURNAL_AT] as string | null | undefined)?.length ?? 0)
}
