/** Rows of one shape as columns: what is the same in all of them travels once, because copying between threads is what costs. */
import type { Cell, Row } from '../sql/rows.ts'

export interface Columns {
  readonly count: number
  /** One value for all rows, or one for each. */
  readonly columns: readonly (Cell | readonly Cell[])[]
}

export const packRows = (rows: readonly Row[]): Columns => {
  const [first = []] = rows
  return {
    count: rows.length,
    columns: first.map((cell, n) => (isSame(rows, n, cell) ? cell : rows.map((row) => row[n]!))),
  }
}

const isSame = (rows: readonly Row[], n: number, cell: Cell): boolean => {
  for (const row of rows) if (row[n] !== cell) return false
  return true
}

export const unpackRows = ({ count, columns }: Columns): Row[] => {
  const rows: Row[] = []
  for (let i = 0; i < count; i++)
    rows.push(columns.map((column) => (Array.isArray(column) ? (column[i] as Cell) : (column as Cell))))
  return rows
}
