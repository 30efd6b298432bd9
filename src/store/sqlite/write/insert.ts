/** Inserts tasks with their keys. Runs on the store's thread and, for a transactional submit, on the caller's connection. */
import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { type KeyRecord, keyIsLive } from '../../../core/idempotency.ts'
import type { Instant } from '../../../core/task.ts'
import { type Cell, COLUMNS_WITH_HISTORY, FRESH_COLUMNS, type Row } from '../../sql/rows.ts'
import { isTaken } from '../errors.ts'
import { prepared } from '../file/connection.ts'
import type { Tally } from '../read/counts.ts'
import { findKey, getRow } from '../read/query.ts'
import { type Columns, rowAt, unpackColumns } from './columns.ts'
import { appendJournal, type JournalRow } from './journal.ts'

export interface InsertRow {
  readonly row: Row
  readonly fresh: boolean
  readonly journal: readonly JournalRow[]
  readonly key: KeyRecord | null
  /** As of Insertion. */
  readonly replaces: string | null
}

/** Like `Inserted` of the contract, with rows instead of records. null means created. */
export type InsertedRow = null | { readonly key: KeyRecord; readonly task: Row | null } | { readonly task: Row }

const marks = (columns: string): string =>
  columns
    .split(',')
    .map(() => '?')
    .join(', ')
const INSERT_FRESH = `insert into holdfast_task (${FRESH_COLUMNS}) values (${marks(FRESH_COLUMNS)}) on conflict (id) do nothing`
const INSERT_WHOLE = `insert into holdfast_task (${COLUMNS_WITH_HISTORY}) values (${marks(COLUMNS_WITH_HISTORY)}) on conflict (id) do nothing`
const PUT_KEY =
  'insert into holdfast_key (key, task_id, hash, expires_at, exact) values (?, ?, ?, ?, ?) ' +
  'on conflict (key) do update set task_id = excluded.task_id, hash = excluded.hash, expires_at = excluded.expires_at, exact = excluded.exact, orphan = 0'

const STATUS_AT = 11

/** Rows per statement. More rows save nothing. */
const BLOCK = 50

const COLUMNS = FRESH_COLUMNS.split(', ')

/** A statement for a block of rows. Values that they share are bound once, as the first parameters. */
const blockText = (own: readonly boolean[]): string => {
  const shared = own.filter((isOwn) => !isOwn).length
  const width = own.length - shared
  const row = (r: number): string => {
    let [bound, free] = [0, shared + r * width]
    return `(${own.map((isOwn) => `?${isOwn ? ++free : ++bound}`).join(', ')})`
  }
  return `insert into holdfast_task (${FRESH_COLUMNS}) values ${Array.from({ length: BLOCK }, (_, r) => row(r)).join(', ')}`
}

const blockTexts = new Map<string, string>()

const blockStatement = (db: DatabaseSync, own: readonly boolean[]): StatementSync => {
  const name = own.join()
  let text = blockTexts.get(name)
  if (text === undefined) {
    text = blockText(own)
    blockTexts.set(name, text)
  }
  return prepared(db, text)
}

/** Returns null if all were created. */
export const insertPlain = (db: DatabaseSync, tasks: Columns, tally: Tally): InsertedRow[] | null => {
  const columns = unpackColumns(tasks)
  const own = columns.map((column) => Array.isArray(column))
  const shared = columns.filter((_, n) => !own[n]) as Cell[]
  const varying = columns.filter((_, n) => own[n]) as (readonly Cell[])[]
  const queues = columns[COLUMNS.indexOf('queue')]!
  const results: InsertedRow[] = []
  let start = 0
  for (; start + BLOCK <= tasks.count; start += BLOCK) {
    const cells = [...shared]
    for (let i = start; i < start + BLOCK; i++) for (const column of varying) cells.push(column[i]!)
    try {
      blockStatement(db, own).run(...cells)
      if (!Array.isArray(queues)) tally.add(queues as string, 'pending', BLOCK)
      else for (let i = start; i < start + BLOCK; i++) tally.add(queues[i] as string, 'pending', 1)
    } catch (error) {
      // The block was not written because one of its ids is taken: insert row by row to find out which.
      if (!isTaken(error)) throw error
      for (let i = start; i < start + BLOCK; i++) results[i] = insertTask(db, rowAt(columns, i), true, tally)
    }
  }
  for (; start < tasks.count; start++) results[start] = insertTask(db, rowAt(columns, start), true, tally)
  if (results.every((inserted) => inserted === null)) return null
  return Array.from({ length: tasks.count }, (_, i) => results[i] ?? null)
}

const insertTask = (db: DatabaseSync, row: Row, fresh: boolean, tally: Tally): { readonly task: Row } | null => {
  const { changes } = prepared(db, fresh ? INSERT_FRESH : INSERT_WHOLE).run(...row)
  if (changes === 0) return { task: getRow(db, row[0] as string)! }
  tally.add(row[1] as string, fresh ? 'pending' : (row[STATUS_AT] as string), 1)
  return null
}

export const insertRow = (
  db: DatabaseSync,
  { row, fresh, journal, key, replaces }: InsertRow,
  now: Instant,
  tally: Tally,
): InsertedRow => {
  if (key !== null) {
    const held = findKey(db, key.key)
    if (held !== null && held.key.taskId !== replaces && keyIsLive(held.key, held.task !== null, now)) return held
  }
  const clash = insertTask(db, row, fresh, tally)
  if (clash !== null) return clash
  if (journal.length > 0) appendJournal(db, row[0] as string, journal)
  if (key !== null) prepared(db, PUT_KEY).run(key.key, key.taskId, key.hash, key.expiresAt, key.exact ? 1 : 0)
  return null
}
