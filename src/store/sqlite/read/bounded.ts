/** Lists and counts that scan a bounded number of tasks: by an index where one leads to those that match, else from the end where the page begins. */
import type { DatabaseSync } from 'node:sqlite'
import type { Instant } from '../../../core/task.ts'
import type { CountedView } from '../../../core/views.ts'
import { PARKED } from '../../sql/conditions.ts'
import type { Cell, Row } from '../../sql/rows.ts'
import { COLUMNS } from '../../sql/rows.ts'
import {
  countLater,
  indexedPart,
  isAnsweredByIndex,
  isIndexed,
  isWaiting,
  laterWithout,
  MOST_READ,
  mostCandidates,
  scanned,
  shareOf,
} from '../../sql/waiting.ts'
import type { Counted, CountLimits, Page, Query, QueueCounts } from '../../store.ts'
import { prepared } from '../file/connection.ts'
import { countOf } from './counts.ts'
import { condition, countRows, cutRows, direct, isWholeStatus, listStep, totalOf } from './query.ts'

export interface ListedRows {
  readonly rows: Row[]
  readonly stoppedAt: string | null
}

/** Up to this number, all pending tasks are scanned in their index, and rows are read for what it does not have. */
const FEW_WAITING = 200_000
const WAITING = `status = 'pending'`

export const listBounded = (
  db: DatabaseSync,
  query: Query,
  page: Page,
  maxScanned: number,
  now: Instant,
): ListedRows => {
  const { rows, after } = listStep(db, query, page, now, scanned(query, maxScanned))
  if (after === null || !isWaiting(query)) return { rows, stoppedAt: after }
  if (!isAnsweredByIndex(query) && countOf(db, undefined, 'pending') > FEW_WAITING) return { rows, stoppedAt: after }
  return waitingRows(db, query, page, now, mostCandidates(query, page.limit))
}

/** The first pending tasks in order. At most `most` candidates come from the index; their rows are read until the page is full. */
const waitingRows = (
  db: DatabaseSync,
  query: Query,
  { order, limit, after }: Page,
  now: Instant,
  most: number,
): ListedRows => {
  const indexed = condition(indexedPart(query), now)
  const [sign, direction] = order === 'oldest' ? ['>', 'asc'] : ['<', 'desc']
  const beyond = after === undefined ? '' : ` and +id ${sign} ?`
  const from: Cell[] = after === undefined ? [] : [after]
  const ids = `select id from holdfast_task indexed by holdfast_task_ready where ${WAITING} and ${indexed.sql}${beyond} order by +id ${direction} limit ${most}`
  const given = [...indexed.values, ...from]
  const { sql, values } = condition(query, now)
  const columns = COLUMNS.replace('id,', 'task.id,')
  const rows = prepared(
    db,
    `select ${columns} from (${ids}) as newest cross join holdfast_task as task on task.id = newest.id where ${sql} limit ?`,
  ).iterate(...given, ...values, limit)
  const { taken, isCut } = cutRows(rows)
  if (isCut || taken.length === limit) return { rows: taken, stoppedAt: null }
  const [last] = prepared(db, `select id from (${ids}) limit 1 offset ${most - 1}`).all(...given)
  return { rows: taken, stoppedAt: (last as unknown as [string] | undefined)?.[0] ?? null }
}

const numberOf = (db: DatabaseSync, sql: string, ...values: Cell[]): number =>
  (prepared(db, sql).get(...values) as unknown as [number])[0]

export const countTasks = (db: DatabaseSync, query: Query, limits: CountLimits, now: Instant): Counted => {
  const later = countLater(query, (one) => countTasks(db, one, limits, now))
  if (later !== null) return laterWithout(later.all, later.parked)
  const { cap, maxScanned } = limits
  const total = isWholeStatus(query) ? totalOf(db, query) : null
  if (maxScanned !== undefined)
    return total === null ? countBounded(db, query, cap, maxScanned, now) : { count: total, capped: false }
  const counted = total ?? countRows(db, query, cap + 1, now)
  return { count: Math.min(counted, cap), capped: counted > cap }
}

const countBounded = (db: DatabaseSync, query: Query, cap: number, maxScanned: number, now: Instant): Counted => {
  const { sql, values } = condition(query, now)
  const few = direct(query, now)
  const most = isWaiting(query) && !isIndexed(query) ? Math.min(maxScanned, MOST_READ) : maxScanned
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

export const countQueues = (
  db: DatabaseSync,
  names: readonly string[],
  cap: number,
  now: Instant,
): readonly QueueCounts[] => {
  const mostRead = shareOf(names.length, cap)
  return names.map((name) => countQueue(db, name, cap, mostRead, now))
}

const SPLIT_COLUMNS = 'retry_count, parked_revision, revision'

/** Of these tasks due later: how many are retrying, and how many are retrying or parked. */
const splitLater = (db: DatabaseSync, tasks: string, queue: string, now: Instant): readonly [number, number] => {
  const isParked = 'coalesce(parked_revision, 0) = revision'
  const [retrying, either] = prepared(
    db,
    `select coalesce(sum(retry_count > 0 and not ${isParked}), 0), coalesce(sum(retry_count > 0 or ${isParked}), 0) from ${tasks}`,
  ).get(queue, now) as unknown as [number, number]
  return [retrying, either]
}

/** Totals per status are stored, so only pending tasks must be split into views. */
const countQueue = (db: DatabaseSync, queue: string, cap: number, mostRead: number, now: Instant): QueueCounts => {
  const of = (status: string): number => countOf(db, queue, status)
  const some = (columns: string, when: '<=' | '>', most = cap + 1): string =>
    `(select ${columns} from holdfast_task where ${WAITING} and queue = ? and available_at ${when} ? limit ${most})`
  const waiting = of('pending')
  const later = waiting === 0 ? 0 : numberOf(db, `select count(*) from ${some('1', '>')}`, queue, now)
  // The index does not have the retry count, so rows are read.
  const read = Math.min(later, mostRead)
  const [retrying, notScheduled] = read === 0 ? [0, 0] : splitLater(db, some(SPLIT_COLUMNS, '>', read), queue, now)
  const parked =
    later === 0
      ? 0
      : numberOf(
          db,
          `select count(*) from (select 1 from holdfast_task indexed by holdfast_task_parked where ${PARKED} and queue = ? and available_at > ? limit ${cap + 1})`,
          queue,
          now,
        )
  const hasMoreLater = later > cap
  const ready = hasMoreLater ? numberOf(db, `select count(*) from ${some('1', '<=')}`, queue, now) : waiting - later
  const hasMoreReady = hasMoreLater && ready > cap
  const capped: CountedView[] = []
  if (hasMoreReady) capped.push('ready')
  if (later > read) capped.push('scheduled', 'retrying')
  if (parked > cap) capped.push('parked')
  return {
    ready: hasMoreReady ? cap : ready,
    scheduled: read - notScheduled,
    retrying,
    parked: Math.min(parked, cap),
    running: of('running'),
    completed: of('completed'),
    failed: of('failed'),
    cancelled: of('cancelled'),
    expired: of('expired'),
    archived: of('archived'),
    capped,
  }
}
