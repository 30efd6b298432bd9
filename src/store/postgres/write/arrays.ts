/**
 * Rows of one shape as parameters. A value that all rows share is bound once. The other columns are each bound as one text with
 * separators: the driver's array literals quote and escape every value, and for JSON, which is full of quotes, that took a fifth
 * of the time of an insert.
 */
import type { Cell } from '../../sql/rows.ts'
import type { Value } from '../connection.ts'

/** Columns that hold an instant, in milliseconds. */
export const INSTANT_COLUMNS: ReadonlySet<string> = new Set([
  'available_at',
  'expires_at',
  'created_at',
  'updated_at',
  'started_at',
  'completed_at',
  'expired_at',
  'lease_claimed_at',
  'lease_expires_at',
  'lease_ttl',
  'cancel_requested_at',
])
const INTEGERS: ReadonlySet<string> = new Set([
  'priority',
  'revision',
  'attempts',
  'retry_count',
  'reschedule_count',
  'replay_count',
  'parked_revision',
])
const UUIDS: ReadonlySet<string> = new Set(['id', 'replayed_as'])
/** Columns with arbitrary text, which might contain a separator. The others are JSON, base64, names or numbers, without control characters. */
const ANY_TEXT: ReadonlySet<string> = new Set(['idempotency_key', 'lease_worker', 'task_group'])

/** `seen` (the end of a lease as it was read) and `end_key` (an option) are not columns of a task. */
const typeOf = (column: string): string => {
  if (INSTANT_COLUMNS.has(column) || column === 'seen') return 'bigint'
  if (INTEGERS.has(column)) return 'integer'
  if (column === 'end_key') return 'boolean'
  return UUIDS.has(column) ? 'uuid' : 'text'
}

const SEPARATOR = '\x01'
const NULL = '\x02'

/** SQL that decodes the n-th parameter, which `arrayValue` encoded. */
const arrayAt = (column: string, n: number): string => {
  if (ANY_TEXT.has(column)) return `$${n}::text[]`
  const type = typeOf(column)
  // The text begins with a separator, so that a single empty value is not read as no value.
  const texts = `(string_to_array($${n}::text, E'\\x01', E'\\x02'))[2:]`
  return type === 'text' ? texts : `${texts}::${type}[]`
}

const arrayValue = (column: string, rows: readonly (readonly Cell[])[], at: number): Value => {
  if (ANY_TEXT.has(column)) return rows.map((row) => row[at] as string | null)
  let text = ''
  for (const row of rows) {
    const cell = row[at]!
    text += SEPARATOR + (cell === null ? NULL : cell)
  }
  return text
}

const varies = (rows: readonly (readonly Cell[])[], at: number): boolean => {
  const first = rows[0]![at]
  for (const row of rows) if (row[at] !== first) return true
  return false
}

/** The SQL fragments for rows that vary in the same columns. */
export interface BatchWords {
  /** A column's value: the shared parameter, or a column of the table `r`. */
  of(column: string): string
  /** The varying columns as a table `r`, in the given order, numbered by `n` from 1. */
  readonly table: string
  /** The first column, which always counts as varying, as an array. */
  readonly firsts: string
  /** Nothing but the first column varies. */
  readonly isAlike: boolean
  /** The next free parameter. */
  readonly free: string
}

export interface Batch {
  /** Equal for equal fragments. */
  readonly name: string
  words(): BatchWords
  readonly values: Value[]
}

export const bindRows = (columns: readonly string[], rows: readonly (readonly Cell[])[]): Batch => {
  const own = columns.map((_, at) => at === 0 || varies(rows, at))
  return {
    name: own.map((isOwn) => (isOwn ? 'r' : '=')).join(''),
    values: columns.map((column, at) => (own[at] ? arrayValue(column, rows, at) : rows[0]![at]!)),
    words: () => {
      const names = columns.filter((_, at) => own[at])
      const arrays = columns.flatMap((column, at) => (own[at] ? [arrayAt(column, at + 1)] : []))
      return {
        of: (column) => {
          const at = columns.indexOf(column)
          return own[at] ? `r.${column}` : `$${at + 1}::${typeOf(column)}`
        },
        table: `unnest(${arrays.join(', ')}) with ordinality as r(${names.join(', ')}, n)`,
        firsts: arrays[0]!,
        isAlike: names.length === 1,
        free: `$${columns.length + 1}`,
      }
    },
  }
}
