/**
 * A column of a batch as one text: its values with a separator between. The driver's own array literals quote and escape
 * every value, which for JSON, full of quotes, was a fifth of the time of an insert.
 */
import type { Cell } from '../sql/rows.ts'
import type { Value } from './connection.ts'

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
  'cancel_requested_at',
])
const INTEGERS: ReadonlySet<string> = new Set([
  'priority',
  'revision',
  'attempts',
  'retry_count',
  'reschedule_count',
  'replay_count',
])
const UUIDS: ReadonlySet<string> = new Set(['id', 'replayed_as'])
/** Text of any kind, which might have a separator in it. The others are JSON, base64, names or numbers: none has control characters. */
const ANY_TEXT: ReadonlySet<string> = new Set(['idempotency_key', 'lease_worker'])

const SEPARATOR = '\x01'
const NULL = '\x02'

/** How the n-th parameter, made by `arrayValue`, is read on the server. */
export const arrayAt = (column: string, n: number): string => {
  if (ANY_TEXT.has(column)) return `$${n}::text[]`
  // Begins with a separator, so that one empty text is not taken for no text at all.
  const texts = `(string_to_array($${n}::text, E'\\x01', E'\\x02'))[2:]`
  if (INSTANT_COLUMNS.has(column)) return `${texts}::bigint[]`
  if (INTEGERS.has(column)) return `${texts}::integer[]`
  return UUIDS.has(column) ? `${texts}::uuid[]` : texts
}

const arrayValue = (column: string, cells: readonly Cell[]): Value => {
  if (ANY_TEXT.has(column)) return cells as readonly (string | null)[]
  let text = ''
  for (const cell of cells) text += SEPARATOR + (cell === null ? NULL : cell)
  return text
}

/** The columns of rows, each as one parameter. */
export const columnValues = (columns: readonly string[], rows: readonly (readonly Cell[])[]): Value[] =>
  columns.map((column, n) =>
    arrayValue(
      column,
      rows.map((row) => row[n]!),
    ),
  )
