/** The journal of a task: its rows are written, read and removed together with the row of the task. */
import type { DatabaseSync } from 'node:sqlite'
import type { JournalEntry } from '../../../core/task.ts'
import { type Cell, COLUMNS_WITH_HISTORY, decodeOptions, JOURNAL_MARK, type Row } from '../../sql/rows.ts'
import { prepared } from '../file/connection.ts'

/** The number of an entry, and its text. */
export type JournalRow = readonly [n: number, entry: string]

export const encodeJournal = (entries: readonly JournalEntry[]): readonly JournalRow[] =>
  entries.map((entry) => [entry.n, JSON.stringify(entry)])

const APPEND = `insert into holdfast_journal (task, generation, n, entry) select key, coalesce(json_extract(options, '$.generation'), 0), ?, ? from holdfast_task where id = ?`

export const appendJournal = (db: DatabaseSync, id: string, rows: readonly JournalRow[]): void => {
  for (const [n, entry] of rows) prepared(db, APPEND).run(n, entry, id)
}

export const mayHaveJournal = (options: Cell): boolean => options !== null && (options as string).includes(JOURNAL_MARK)

const OPTIONS_AT = COLUMNS_WITH_HISTORY.split(', ').indexOf('options')

const READ = `select group_concat(entry, ',') from (select entry from holdfast_journal where task = (select key from holdfast_task where id = ?) and generation = ? order by n)`

/** The row with its journal behind it, if its task has one. */
export const withJournal = (db: DatabaseSync, row: Row): Row => {
  const options = row[OPTIONS_AT]!
  if (!mayHaveJournal(options)) return row
  const { hasJournal, generation } = decodeOptions(options)
  if (!hasJournal) return row
  const [entries] = prepared(db, READ).get(row[0]!, generation) as unknown as [string | null]
  return [...row, entries]
}

export const removeJournal = (db: DatabaseSync, key: number): void => {
  prepared(db, 'delete from holdfast_journal where task = ?').run(key)
}
