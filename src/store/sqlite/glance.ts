/** Looks that stop in time (see Glance in the contract): by an index where one leads there, else among the newest tasks. */
import type { DatabaseSync } from 'node:sqlite'
import type { Instant } from '../../core/task.ts'
import type { CountedView } from '../../core/views.ts'
import type { Cell, Row } from '../sql/rows.ts'
import { COLUMNS } from '../sql/rows.ts'
import { indexedPart, isIndexed, isWaiting, MOST_READ, shareOf } from '../sql/waiting.ts'
import type { Counted, Page, Query, QueueCounts } from '../store.ts'
import { prepared } from './connection.ts'
import { countOf } from './counts.ts'
import { condition, direct, isWholeStatus, listStep, totalOf } from './query.ts'

export interface Glimpse {
  readonly rows: Row[]
  readonly stoppedAt: string | null
}

/** Waiting tasks up to so many are all looked at, in their index. */
const FEW_WAITING = 200_000
const WAITING = `status = 'pending'`

export const glanceList = (
  db: DatabaseSync,
  query: Query,
  page: Omit<Page, 'order'>,
  most: number,
  now: Instant,
): Glimpse => {
  const { rows, after } = listStep(db, query, { ...page, order: 'newest' }, now, most)
  if (after === null || !isWaiting(query) || countOf(db, undefined, 'pending') > FEW_WAITING)
    return { rows, stoppedAt: after }
  return waitingRows(db, query, page, now)
}

/** The newest of the waiting, by what their index has; their rows are read until the page is full. */
const waitingRows = (db: DatabaseSync, query: Query, { limit, after }: Omit<Page, 'order'>, now: Instant): Glimpse => {
  const indexed = condition(indexedPart(query), now)
  const beyond = after === undefined ? '' : ' and +id < ?'
  const from: Cell[] = after === undefined ? [] : [after]
  const ids = `select id from holdfast_task indexed by holdfast_task_ready where ${WAITING} and ${indexed.sql}${beyond} order by +id desc limit ${MOST_READ}`
  const given = [...indexed.values, ...from]
  const { sql, values } = condition(query, now)
  const columns = COLUMNS.replace('id,', 'task.id,')
  const rows = prepared(
    db,
    `select ${columns} from (${ids}) as newest cross join holdfast_task as task on task.id = newest.id where ${sql} limit ?`,
  ).all(...given, ...values, limit) as unknown as Row[]
  if (rows.length === limit) return { rows, stoppedAt: null }
  const [last] = prepared(db, `select id from (${ids}) limit 1 offset ${MOST_READ - 1}`).all(...given)
  return { rows, stoppedAt: (last as unknown as [string] | undefined)?.[0] ?? null }
}

const numberOf = (db: DatabaseSync, sql: string, ...values: Cell[]): number =>
  (prepared(db, sql).get(...values) as unknown as [number])[0]

export const glanceCount = (db: DatabaseSync, query: Query, cap: number, mostPassed: number, now: Instant): Counted => {
  // Whole statuses are kept counted.
  if (isWholeStatus(query)) return { count: totalOf(db, query), capped: false }
  const { sql, values } = condition(query, now)
  const few = direct(query, now)
  const most = isWaiting(query) && !isIndexed(query) ? Math.min(mostPassed, MOST_READ) : mostPassed
  const indexed = condition(indexedPart(query), now)
  const [from, given] =
    few !== null
      ? [`holdfast_task where ${few.sql}`, few.values]
      : isWaiting(query)
        ? [`holdfast_task indexed by holdfast_task_ready where ${WAITING} and ${indexed.sql}`, indexed.values]
        : ['holdfast_task where true order by id desc', []]
  const counted = numberOf(
    db,
    `select count(*) from (select 1 from (select * from ${from} limit ?) where ${sql} limit ?)`,
    ...given,
    most,
    ...values,
    cap + 1,
  )
  if (counted > cap) return { count: cap, capped: true }
  const passed = numberOf(db, `select count(*) from (select 1 from ${from} limit ?)`, ...given, most + 1)
  return { count: counted, capped: passed > most }
}

export const glanceQueues = (
  db: DatabaseSync,
  names: readonly string[],
  cap: number,
  now: Instant,
): readonly QueueCounts[] => {
  const mostRead = shareOf(names.length, cap)
  return names.map((name) => glanceQueue(db, name, cap, mostRead, now))
}

/** Totals of whole statuses are kept; only what waits is to be told apart. */
const glanceQueue = (db: DatabaseSync, queue: string, cap: number, mostRead: number, now: Instant): QueueCounts => {
  const of = (status: string): number => countOf(db, queue, status)
  const some = (columns: string, when: '<=' | '>', most = cap + 1): string =>
    `(select ${columns} from holdfast_task where ${WAITING} and queue = ? and available_at ${when} ? limit ${most})`
  const waiting = of('pending')
  const later = waiting === 0 ? 0 : numberOf(db, `select count(*) from ${some('1', '>')}`, queue, now)
  // Not in the index: rows are read.
  const read = Math.min(later, mostRead)
  const retrying =
    read === 0
      ? 0
      : numberOf(db, `select count(*) from ${some('retry_count', '>', read)} where retry_count > 0`, queue, now)
  const hasMoreLater = later > cap
  const ready = hasMoreLater ? numberOf(db, `select count(*) from ${some('1', '<=')}`, queue, now) : waiting - later
  const hasMoreReady = hasMoreLater && ready > cap
  const capped: CountedView[] = []
  if (hasMoreReady) capped.push('ready')
  if (later > read) capped.push('scheduled', 'retrying')
  return {
    ready: hasMoreReady ? cap : ready,
    scheduled: read - retrying,
    retrying,
    running: of('running'),
    completed: of('completed'),
    failed: of('failed'),
    cancelled: of('cancelled'),
    expired: of('expired'),
    archived: of('archived'),
    capped,
  }
}
