/** Writes to existing tasks: changes guarded by revision, renewals guarded by token, removals. */
import type { DatabaseSync } from 'node:sqlite'
import type { Change, ChangeSet, Instant } from '../../../core/task.ts'
import { HISTORY_KEPT, isInHistory } from '../../../core/task.ts'
import { assignmentsOf, type Cell, pushValues, type Row, shapeOf, trimHistory } from '../../sql/rows.ts'
import type { Committed, Removal, Removed, Renewal, Renewed } from '../../store.ts'
import { prepared } from '../file/connection.ts'
import type { Tally } from '../read/counts.ts'
import { type Columns, packRows, unpackRows } from './columns.ts'
import { appendJournal, encodeJournal, type JournalRow, mayHaveJournal, removeJournal } from './journal.ts'
import { withOption } from './options.ts'

/** The encoding of changes for the message to the thread: those of one shape share the text of their statement. */
export interface ChangeRows {
  readonly texts: readonly string[]
  /** Index of the text, revision after, queue, status before and after, and the values to bind, of which the id is the last but one. */
  readonly rows: readonly Row[] | Columns
  /** By the index of their change; null if no change has any. */
  readonly journals: ReadonlyMap<number, readonly JournalRow[]> | null
}

const HEADER = 5
/** The extra condition of a change that takes a lapsed lease. */
const TAKES_LEASE = 'lease_expires_at = ? and '

interface Statement {
  readonly text: string
}

const statements = new Map<string, Statement>()

interface Shape {
  /** The row's key is known. */
  readonly keyed: boolean
  /** The end of the lease is known. */
  readonly seen: boolean
  /** The move is in the history. */
  readonly listed: boolean
}

/** One statement per set of fields, whose text is built once. */
const statementFor = (set: ChangeSet, { keyed, seen, listed }: Shape): Statement => {
  const shape = `${keyed ? 'k' : ''}${seen ? 's' : ''}${listed ? '' : 'j'}${shapeOf(set)}`
  let statement = statements.get(shape)
  if (statement === undefined) {
    const where = `${keyed ? 'key = ? and ' : ''}${seen ? TAKES_LEASE : ''}id = ? and revision = ?`
    statement = {
      text: `update holdfast_task set ${assignmentsOf(set, () => '?', withOption)}, revision = revision + 1${listed ? `, history = history || ',' || ?` : ''} where ${where}`,
    }
    statements.set(shape, statement)
  }
  return statement
}

export const encodeChanges = (changes: readonly Change[]): ChangeRows => {
  const texts: string[] = []
  const indexes = new Map<Statement, number>()
  const rows = changes.map(({ id, queue, revision, from, set, entry, leaseExpiresAt, mark }) => {
    const keyed = typeof mark === 'number'
    const seen = leaseExpiresAt !== undefined
    const listed = isInHistory(entry)
    const statement = statementFor(set, { keyed, seen, listed })
    let index = indexes.get(statement)
    if (index === undefined) {
      index = texts.push(statement.text) - 1
      indexes.set(statement, index)
    }
    const row: Cell[] = [index, entry.n, queue, from, set.status ?? from]
    pushValues(row, set)
    if (listed) row.push(JSON.stringify(entry))
    if (keyed) row.push(mark)
    if (seen) row.push(leaseExpiresAt)
    row.push(id, revision)
    return row
  })
  // Usually all changes are alike: tasks that completed.
  return { texts, rows: texts.length === 1 ? packRows(rows) : rows, journals: journalsOf(changes) }
}

const journalsOf = (changes: readonly Change[]): ChangeRows['journals'] => {
  const journals = new Map<number, readonly JournalRow[]>()
  for (const [i, { journal }] of changes.entries()) if (journal !== undefined) journals.set(i, encodeJournal(journal))
  return journals.size === 0 ? null : journals
}

/** Expands the compact result of commitRows. */
export const commitAnswer = (
  changes: readonly Change[],
  committed: readonly Committed[] | null,
): readonly Committed[] => committed ?? changes.map(() => 'written')

/**
 * Returns null if all were written. `isLate` means that the call has waited long for the file's lock. Renewals of other workers have waited
 * too, so no lease is taken, and the caller must look again.
 */
export const commitRows = (
  db: DatabaseSync,
  { texts, rows, journals }: ChangeRows,
  tally: Tally,
  isLate: boolean,
): Committed[] | null => {
  const committed = ('columns' in rows ? unpackRows(rows) : rows).map((row, i) => {
    if (isLate && texts[row[0] as number]!.includes(TAKES_LEASE)) return 'conflict'
    const result = commitRow(db, texts, row, tally)
    const journal = journals?.get(i)
    if (journal !== undefined && result === 'written') appendJournal(db, row[row.length - 2] as string, journal)
    return result
  })
  return committed.every((result) => result === 'written') ? null : committed
}

const commitRow = (db: DatabaseSync, texts: readonly string[], row: Row, tally: Tally): Committed => {
  const [text, n, queue, from, to] = row as [number, number, string, string, string]
  const id = row[row.length - 2] as string
  if (prepared(db, texts[text]!).run(...row.slice(HEADER)).changes === 0) return exists(db, id) ? 'conflict' : 'gone'
  if (to !== from) {
    tally.add(queue, from, -1)
    tally.add(queue, to, 1)
  }
  // Two in a hundred, because every second move may be a claim, and claims do not trim.
  if (n > HISTORY_KEPT && n % HISTORY_KEPT <= 1) trim(db, id)
  return 'written'
}

const exists = (db: DatabaseSync, id: string): boolean =>
  prepared(db, 'select 1 from holdfast_task where id = ?').get(id) !== undefined

/** Readers cut a history to the kept length; the stored text is cut now and then, so that it does not grow forever. */
const trim = (db: DatabaseSync, id: string): void => {
  const row = prepared(db, 'select history from holdfast_task where id = ?').get(id) as unknown as [string]
  prepared(db, 'update holdfast_task set history = ? where id = ?').run(trimHistory(row[0]), id)
}

const RENEW = `update holdfast_task set lease_expires_at = min(?, ?), progress = coalesce(?, progress) where id = ? and lease_token = ? and status = 'running' returning cancel_requested_at`

export const renewRow = (db: DatabaseSync, renewal: Renewal, now: Instant): Renewed => {
  const { id, token, leaseTtl, notAfter, progress } = renewal
  const until = now + leaseTtl
  const row = prepared(db, RENEW).get(until, notAfter ?? until, progress ?? null, id, token) as unknown as
    | [number | null]
    | undefined
  if (row === undefined) return 'lost'
  return row[0] === null ? 'held' : 'cancel'
}

const REMOVE =
  'delete from holdfast_task where id = ? and revision = ? returning queue, status, idempotency_key, key, options'

export const removeRow = (db: DatabaseSync, { id, revision, endKey }: Removal, tally: Tally): Removed => {
  const row = prepared(db, REMOVE).get(id, revision) as unknown as
    | [string, string, string | null, number, string | null]
    | undefined
  if (row === undefined) return exists(db, id) ? 'conflict' : 'gone'
  const [queue, status, key, rowKey, options] = row
  tally.add(queue, status, -1)
  if (mayHaveJournal(options)) removeJournal(db, rowKey)
  if (key !== null) prepared(db, endKey ? END_KEY : ORPHAN_KEY).run(key, id)
  return 'removed'
}

const END_KEY = 'delete from holdfast_key where key = ? and task_id = ?'
const ORPHAN_KEY = 'update holdfast_key set orphan = 1 where key = ? and task_id = ?'
const DEAD_KEYS =
  'delete from holdfast_key where key in (select key from holdfast_key where orphan = 1 and expires_at <= ? limit 200)'

/** Removes expired keys whose task is gone. */
export const sweepKeys = (db: DatabaseSync, now: Instant): void => {
  prepared(db, DEAD_KEYS).run(now)
}
