/** Rows of one shape as columns. A value that all rows share is sent once, because copying between threads dominates the cost. */
import type { Cell, Row } from '../../sql/rows.ts'

/** The texts of a column joined into one: copying one long text costs a fraction of copying many short ones. */
interface Joined {
  readonly joined: string
}

export interface Columns {
  readonly count: number
  /** One value for all rows, or one value per row. */
  readonly columns: readonly (Cell | Joined | readonly Cell[])[]
}

/** Not in JSON, ids and names; where it is in a text all the same, the column is not joined. */
const SEPARATOR = '\x01'

export const packRows = (rows: readonly Row[]): Columns => {
  const [first = []] = rows
  return {
    count: rows.length,
    columns: first.map((cell, n) => (isShared(rows, n, cell) ? cell : (joined(rows, n) ?? rows.map((row) => row[n]!)))),
  }
}

const isShared = (rows: readonly Row[], n: number, cell: Cell): boolean => {
  for (const row of rows) if (row[n] !== cell) return false
  return true
}

const joined = (rows: readonly Row[], n: number): Joined | null => {
  let text = ''
  for (const row of rows) {
    const cell = row[n]
    if (typeof cell !== 'string' || cell.includes(SEPARATOR)) return null
    text += text === '' ? cell : SEPARATOR + cell
  }
  // A single empty text would look like no text.
  return rows[0]![n] === '' ? null : { joined: text }
}

/** Each column is one shared value, or an array with one value per row. */
export const unpackColumns = ({ columns }: Columns): readonly (Cell | readonly Cell[])[] =>
  columns.map((column) => (isJoined(column) ? column.joined.split(SEPARATOR) : column))

const isJoined = (column: Cell | Joined | readonly Cell[]): column is Joined =>
  column !== null && typeof column === 'object' && 'joined' in column

export const unpackRows = (packed: Columns): Row[] => {
  const columns = unpackColumns(packed)
  const rows: Row[] = []
  for (let i = 0; i < packed.count; i++) rows.push(rowAt(columns, i))
  return rows
}

export const rowAt = (columns: readonly (Cell | readonly Cell[])[], i: number): Row =>
  columns.map((column) => (Array.isArray(column) ? (column[i] as Cell) : (column as Cell)))
