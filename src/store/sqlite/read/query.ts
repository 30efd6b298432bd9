/** Reads by id, key and page, and counts. Long walks are split into bounded steps, so that the thread can serve other calls in between. */
import type { DatabaseSync } from 'node:sqlite'
import type { KeyRecord } from '../../../core/idempotency.ts'
import { cutToWeight, readToWeight } from '../../../core/storage/page-weight.ts'
import { type Instant, STATUSES } from '../../../core/task.ts'
import { type Condition, conditionOf, firstIdAt, LATELY, PARKED, type Tagged } from '../../sql/conditions.ts'
import { type Cell, COLUMNS, COLUMNS_WITH_HISTORY, type Row, weightOfRow } from '../../sql/rows.ts'
import { isOnly, isRare } from '../../sql/statuses.ts'
import { isParked } from '../../sql/waiting.ts'
import type { Page, Query } from '../../store.ts'
import { prepared } from '../file/connection.ts'
import { MOVED, SPARSE } from '../schema.ts'
import { withJournal } from '../write/journal.ts'
import { countOf } from './counts.ts'

/** With its history and its journal. */
export const getRow = (db: DatabaseSync, id: string): Row | null => {
  const row = prepared(db, `select ${COLUMNS_WITH_HISTORY} from holdfast_task where id = ?`).get(id) as unknown as
    | Row
    | undefined
  return row === undefined ? null : withJournal(db, row)
}

/** The rows of the first ids, as many as one reply may hold. */
export const getRows = (db: DatabaseSync, ids: readonly string[]): (Row | null)[] =>
  readToWeight(
    ids,
    (id) => getRow(db, id),
    (row) => (row === null ? 0 : weightOfRow(row)),
  )

export const findKey = (db: DatabaseSync, key: string): { key: KeyRecord; task: Row | null } | null => {
  const row = prepared(db, 'select key, task_id, hash, expires_at, exact from holdfast_key where key = ?').get(
    key,
  ) as unknown as [string, string, string, number, number] | undefined
  if (row === undefined) return null
  const [name, taskId, hash, expiresAt, exact] = row
  return { key: { key: name, taskId, hash, expiresAt, exact: exact === 1 }, task: getRow(db, taskId) }
}

/** The tasks that this claim leased and that have not moved since. */
export const leasedBy = (db: DatabaseSync, workerId: string, op: string): { id: string; token: string }[] =>
  (
    prepared(
      db,
      `select id, lease_token from holdfast_task indexed by holdfast_task_lease where status = 'running' and lease_worker = ?1 and substr(lease_token, 1, length(?2)) = ?2`,
    ).all(workerId, `${op}.`) as unknown as [string, string][]
  ).map(([id, token]) => ({ id, token }))

/** The most rows in one step of a walk. */
const STEP = 5_000

export const condition = (query: Query, now: Instant): Condition => conditionOf(query, now, TAGGED)
const TAGGED: Tagged = {
  exact: `exists (select 1 from json_each(options, '$.tags') as tag where tag.key = ? and tag.value = ?)`,
  has: 'instr(options, ?) > 0',
}

/** Recent changes, by three indexes: moved and not running; running; submitted and not yet moved. */
const CHANGED =
  `id in (select id from holdfast_task where ${MOVED} and updated_at > ?1 and updated_at < ?3` +
  ` union all select id from holdfast_task where status = 'running' and updated_at > ?1` +
  ` union all select id from holdfast_task where id >= ?2 and revision = 1 and updated_at > ?1)`

const FOREVER = Number.MAX_SAFE_INTEGER
const RUNNING = `status = 'running'`

/**
 * Rare statuses have an index, running tasks are few, and so are recent changes: these are found without a walk. null means
 * that a walk is needed.
 */
export const direct = (query: Query, now: Instant): Condition | null => {
  const { workerId, updatedAfter, updatedBefore = FOREVER } = query
  if (workerId !== undefined || isOnly(query, 'running')) return { sql: RUNNING, values: [] }
  if (isRare(query)) return { sql: SPARSE, values: [] }
  if (isParked(query)) return { sql: PARKED, values: [] }
  if (updatedAfter === undefined || updatedAfter < now - LATELY) return null
  return { sql: CHANGED, values: [updatedAfter, firstIdAt(updatedAfter), updatedBefore] }
}

export interface Step {
  readonly rows: Row[]
  /** Where to continue; null if there is no more or the page is full. */
  readonly after: string | null
}

/** Returns at most `limit` matching rows after `after`, and scans at most `most`. */
export const listStep = (
  db: DatabaseSync,
  query: Query,
  { order, limit, after }: Page,
  now: Instant,
  most = STEP,
): Step => {
  if (query.views?.every(({ status }) => countOf(db, query.queue, status) === 0)) return { rows: [], after: null }
  const { sql, values } = condition(query, now)
  const sign = order === 'oldest' ? '>' : '<'
  const direction = order === 'oldest' ? 'asc' : 'desc'
  const beyond = after === undefined ? '' : ` and id ${sign} ?`
  const from: Cell[] = after === undefined ? [] : [after]
  const few = direct(query, now)
  if (few !== null) {
    // unary plus, where they are few: found by their own index and then sorted, or the planner walks all tasks along id.
    const id = few.sql === RUNNING || few.sql === PARKED ? '+id' : 'id'
    const rows = prepared(
      db,
      `select ${COLUMNS} from holdfast_task where ${few.sql} and ${sql}${beyond.replace('id', id)} order by ${id} ${direction} limit ?`,
    ).iterate(...few.values, ...values, ...from, limit)
    return { rows: cutRows(rows).taken, after: null }
  }
  const edge = prepared(
    db,
    `select id from holdfast_task where true${beyond} order by id ${direction} limit 1 offset ?`,
  ).get(...from, most - 1) as unknown as [string] | undefined
  const within = edge === undefined ? '' : ` and id ${order === 'oldest' ? '<=' : '>='} ?`
  const bounds: Cell[] = edge === undefined ? from : [...from, edge[0]]
  // unary plus: only the walk along id may be indexed, or the planner picks an index that sorts everything first.
  const rows = prepared(
    db,
    `select ${COLUMNS} from holdfast_task where (+id is not null and ${sql})${beyond}${within} order by id ${direction} limit ?`,
  ).iterate(...values, ...bounds, limit)
  const { taken, isCut } = cutRows(rows)
  return { rows: taken, after: isCut || taken.length === limit || edge === undefined ? null : edge[0] }
}

/** Reads rows one by one, so that rows beyond the limit are never in memory. */
export const cutRows = (rows: Iterable<unknown>): { taken: Row[]; isCut: boolean } =>
  cutToWeight(rows as Iterable<Row>, weightOfRow)

export const isWholeStatus = ({ queue: _, views, ...others }: Query): boolean =>
  Object.values(others).every((value) => value === undefined) &&
  (views?.every(({ available, retried, parked }) => available === undefined && !retried && parked === undefined) ??
    true)

/** The stored total of whole statuses. */
export const totalOf = (db: DatabaseSync, { queue, views }: Query): number => {
  const statuses = new Set(views?.map(({ status }) => status) ?? STATUSES)
  let total = 0
  for (const status of statuses) total += countOf(db, queue, status)
  return total
}

/** Counts up to `cap`. */
export const countRows = (db: DatabaseSync, query: Query, cap: number, now: Instant): number => {
  const { sql, values } = condition(query, now)
  const row = prepared(db, `select count(*) from (select 1 from holdfast_task where ${sql} limit ?)`).get(
    ...values,
    cap,
  ) as unknown as [number]
  return row[0]
}
