/** New tasks with their keys. Runs on the store's thread, and on the caller's own connection for a transactional submit. */
import type { DatabaseSync } from 'node:sqlite'
import { type KeyRecord, keyIsLive } from '../../core/idempotency.ts'
import type { Instant } from '../../core/task.ts'
import { COLUMNS_WITH_HISTORY, FRESH_COLUMNS, type Row } from '../sql/rows.ts'
import { type Columns, unpackRows } from './columns.ts'
import { prepared } from './connection.ts'
import type { Tally } from './counts.ts'
import { findKey, getRow } from './query.ts'

export interface InsertRow {
  readonly row: Row
  readonly fresh: boolean
  readonly key: KeyRecord | null
}

/** As Inserted of the contract, with rows instead of records. null: created. */
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

/** null: all were created. */
export const insertPlain = (db: DatabaseSync, tasks: Columns, tally: Tally): InsertedRow[] | null => {
  const results = unpackRows(tasks).map((row) => insertTask(db, row, true, tally))
  return results.every((inserted) => inserted === null) ? null : results
}

const insertTask = (db: DatabaseSync, row: Row, fresh: boolean, tally: Tally): { readonly task: Row } | null => {
  const { changes } = prepared(db, fresh ? INSERT_FRESH : INSERT_WHOLE).run(...row)
  if (changes === 0) return { task: getRow(db, row[0] as string)! }
  tally.add(row[1] as string, fresh ? 'pending' : (row[STATUS_AT] as string), 1)
  return null
}

export const insertRow = (
  db: DatabaseSync,
  { row, fresh, key }: InsertRow,
  now: Instant,
  tally: Tally,
): InsertedRow => {
  if (key !== null) {
    const held = findKey(db, key.key)
    if (held !== null && keyIsLive(held.key, held.task !== null, now)) return held
  }
  const clash = insertTask(db, row, fresh, tally)
  if (clash !== null) return clash
  if (key !== null) prepared(db, PUT_KEY).run(key.key, key.taskId, key.hash, key.expiresAt, key.exact ? 1 : 0)
  return null
}
