/** Lists and counts that scan a bounded number of tasks: by an index if one leads to the matches, otherwise from the end where the page begins. */
import { isLastPage } from '../../../core/storage/page-weight.ts'
import type { Instant } from '../../../core/task.ts'
import type { CountedView } from '../../../core/views.ts'
import { PARKED } from '../../sql/conditions.ts'
import { COLUMNS, decodeWhole, type Row } from '../../sql/rows.ts'
import { isOnly, isRare, RARE } from '../../sql/statuses.ts'
import {
  countLater,
  indexedPart,
  isAnsweredByIndex,
  isParked,
  isWaiting,
  laterWithout,
  MOST_READ,
  mostCandidates,
  scanned,
  shareOf,
} from '../../sql/waiting.ts'
import type { Counted, Page, Query, QueueCounts, TaskList } from '../../store.ts'
import type { Executor, Value } from '../connection.ts'
import { cutToWeight, listTasks, NOW, numbered, whereOf } from './query.ts'

/** These queries match few tasks and have an index. */
const isFew = (query: Query): boolean =>
  query.workerId !== undefined || isOnly(query, 'running') || isRare(query) || isParked(query)

export const listBounded = async (
  executor: Executor,
  schema: string,
  query: Query,
  page: Page,
  maxScanned: number,
): Promise<TaskList> => {
  const all = async () => ({
    tasks: await listTasks(executor, schema, query, page),
    stoppedAt: null,
  })
  if (isFew(query)) return all()
  const edge = await edgeOf(executor, schema, page, scanned(query, maxScanned))
  if (edge === null) return all()
  const { sql, values } = whereOf(query, page.now)
  const { beyond, after, direction } = orderOf(page)
  const rows = await executor.query(
    numbered(
      cutToWeight(
        `select ${COLUMNS} from ${schema}.task where ${sql} and ${beyond} and id ${page.order === 'oldest' ? '<=' : '>='} ?::uuid order by id ${direction} limit ?`,
        `id ${direction}`,
      ),
    ),
    [...values, ...after, edge, page.limit],
  )
  const tasks = rows.map((row) => decodeWhole(row as Row))
  if (!isLastPage(tasks, page.limit)) return { tasks, stoppedAt: null }
  // If the first tasks have few matches, pending tasks are found by their index.
  if (isWaiting(query)) return waitingTasks(executor, schema, query, page, mostCandidates(query, page.limit))
  return { tasks, stoppedAt: edge }
}

interface Ordered {
  readonly beyond: string
  readonly after: Value[]
  readonly direction: 'asc' | 'desc'
}

const orderOf = ({ order, after }: Pick<Page, 'order' | 'after'>): Ordered => ({
  beyond: after === undefined ? 'true' : `id ${order === 'oldest' ? '>' : '<'} ?::uuid`,
  after: after === undefined ? [] : [after],
  direction: order === 'oldest' ? 'asc' : 'desc',
})

/**
 * The first pending tasks in order. At most `most` candidates come from the index; their rows are read until the page is full. Sorted by the id as
 * text, which is the same order: sorted by the id itself, the planner would walk all tasks.
 */
const waitingTasks = async (
  executor: Executor,
  schema: string,
  query: Query,
  { order, limit, after: cursor, now }: Page,
  most: number,
): Promise<TaskList> => {
  const indexed = whereOf(indexedPart(query), now)
  const { beyond, after, direction } = orderOf({ order, ...(cursor === undefined ? null : { after: cursor }) })
  const ids = `select id as first_id from ${schema}.task where status = 'pending' and ${indexed.sql} and ${beyond} order by id::text collate "C" ${direction} limit ${most}`
  const given = [...indexed.values, ...after]
  const { sql, values } = whereOf(query, now)
  const rows = await executor.query(
    numbered(
      // `offset 0` keeps the planner from swapping the join: one row is read per id, in order.
      cutToWeight(
        `select ${COLUMNS} from (${ids}) as candidate cross join lateral (select * from ${schema}.task where id = first_id and ${sql} offset 0) as task order by first_id::text collate "C" ${direction} limit ?`,
        `id ${direction}`,
      ),
    ),
    [...given, ...values, limit],
  )
  const tasks = rows.map((row) => decodeWhole(row as Row))
  if (!isLastPage(tasks, limit)) return { tasks, stoppedAt: null }
  const [last] = await executor.query(numbered(`select first_id from (${ids}) as candidate offset ${most - 1}`), given)
  return { tasks, stoppedAt: (last?.[0] as string | undefined) ?? null }
}

/** The id of the last of `maxScanned` tasks, going on from the cursor; null if there are fewer. */
const edgeOf = async (executor: Executor, schema: string, page: Page, maxScanned: number): Promise<string | null> => {
  const { beyond, after, direction } = orderOf(page)
  const [row] = await executor.query(
    numbered(`select id from ${schema}.task where ${beyond} order by id ${direction} offset ? limit 1`),
    [...after, maxScanned - 1],
  )
  return (row?.[0] as string | undefined) ?? null
}

export const countBounded = async (
  executor: Executor,
  schema: string,
  query: Query,
  cap: number,
  maxScanned: number,
  now: Instant | null,
): Promise<Counted> => {
  const later = countLater(query, (one) => countBounded(executor, schema, one, cap, maxScanned, now))
  if (later !== null) return laterWithout(await later.all, await later.parked)
  const { sql, values } = whereOf(query, now)
  // Scans the tasks that an index finds; without such an index, the newest tasks.
  const base = isFew(query) ? query : isWaiting(query) ? indexedPart(query) : null
  const passed = base === null ? { sql: 'true', values: [] } : whereOf(base, now)
  const order = base === null ? 'order by id desc' : ''
  if (isAnsweredByIndex(query)) {
    // Only columns of the index, so that no row is read, and in its order, or the planner may walk the table.
    const [row] = await executor.query(
      numbered(
        `select count(*) from (select 1 from ${schema}.task where ${sql} order by queue, type limit ?) as counted`,
      ),
      [...values, cap + 1],
    )
    const counted = Number(row![0])
    return { count: Math.min(counted, cap), capped: counted > cap }
  }
  const looked = isWaiting(query) ? Math.min(maxScanned, MOST_READ) : maxScanned
  const [row] = await executor.query(
    numbered(
      `select count(*) from (select 1 from (select * from ${schema}.task where ${passed.sql} ${order} limit ?) as passed where ${sql} limit ?) as counted`,
    ),
    [...passed.values, looked, ...values, cap + 1],
  )
  const counted = Number(row![0])
  if (counted > cap) return { count: cap, capped: true }
  const [beyond] = await executor.query(
    numbered(`select 1 from ${schema}.task where ${passed.sql} ${order} offset ? limit 1`),
    [...passed.values, looked],
  )
  return { count: counted, capped: beyond !== undefined }
}

/** How many of the newest tasks are scanned to count statuses without an index, such as completed. */
const NEWEST = 20_000

/** Each of these rows is read for its queue, and they are scattered. The statuses that people look at most are counted furthest. */
const mostOfStatus = (status: (typeof RARE)[number], cap: number): number =>
  Math.ceil(cap / (status === 'failed' ? 2 : 10))

/**
 * One statement for all counts: rows of kind, queue and numbers. Pending tasks are split into views by their index. Completed tasks
 * are the most numerous and have no index by queue, so only the newest are counted.
 */
const queuesText = (schema: string, now: string, cap: number): string => {
  const task = `${schema}.task`
  const sparse = RARE.map(
    (status) =>
      `select '${status}', queue, count(*), sum(count(*)) over (), 0, 0, 0 from (select queue from ${task} where status = '${status}' and status not in ('pending', 'running', 'completed') order by id desc limit ${mostOfStatus(status, cap) + 1}) as looked group by queue`,
  )
  return [
    `select 'waiting' as what, q.name as queue, ready.n as a, later.n as b, retrying.n as c, retrying.either as d, parked.n as e from unnest($1::text[]) as q(name)
      cross join lateral (select count(*) as n from (select 1 from ${task} where status = 'pending' and queue = q.name and available_at <= ${now} limit $2) as looked) as ready
      cross join lateral (select count(*) as n from (select 1 from ${task} where status = 'pending' and queue = q.name and available_at > ${now} limit $2) as looked) as later
      cross join lateral (select count(*) filter (where retry_count > 0 and not is_parked) as n, count(*) filter (where retry_count > 0 or is_parked) as either from (select retry_count, coalesce(parked_revision, 0) = revision as is_parked from ${task} where status = 'pending' and queue = q.name and available_at > ${now} limit $4) as looked) as retrying
      cross join lateral (select count(*) as n from (select 1 from ${task} where ${PARKED} and queue = q.name and available_at > ${now} limit $2) as looked) as parked`,
    `select 'running', queue, count(*), 0, 0, 0, 0 from ${task} where status = 'running' group by queue`,
    ...sparse,
    `select 'completed', queue, count(*) filter (where status = 'completed'), sum(count(*)) over (), 0, 0, 0 from (select queue, status from ${task} order by id desc limit $3) as looked group by queue`,
  ].join(' union all ')
}

export const countQueues = async (
  executor: Executor,
  schema: string,
  names: readonly string[],
  cap: number,
  now: Instant | null,
): Promise<QueueCounts[]> => {
  const newest = Math.max(NEWEST, cap)
  const mostRead = shareOf(names.length, Math.ceil(cap / 2))
  const rows = await executor.query(queuesText(schema, now === null ? NOW : String(now), cap), [
    names,
    cap + 1,
    newest,
    mostRead,
  ])
  const none = { ready: 0, scheduled: 0, retrying: 0, parked: 0, running: 0, completed: 0, failed: 0 }
  const counts = new Map(names.map((name) => [name, { ...none, cancelled: 0, expired: 0, archived: 0 }]))
  const capped = new Map(names.map((name) => [name, new Set<CountedView>()]))
  for (const [what, queue, ...numbers] of rows as [string, string, ...(string | number)[]][]) {
    const [found, more] = [counts.get(queue), capped.get(queue)]
    if (found === undefined || more === undefined) continue
    const [ready = 0, later = 0, retrying = 0, notScheduled = 0, parked = 0] = numbers.map(Number)
    if (what !== 'waiting') {
      found[what as 'running'] = ready
      continue
    }
    Object.assign(found, {
      ready: Math.min(ready, cap),
      scheduled: Math.min(later, mostRead) - notScheduled,
      retrying,
      parked: Math.min(parked, cap),
    })
    if (ready > cap) more.add('ready')
    if (later > mostRead) more.add('scheduled').add('retrying')
    if (parked > cap) more.add('parked')
  }
  // If counting a status stopped early, any queue may have more of them.
  for (const what of ['completed', ...RARE] as const) {
    const passed = Number(rows.find(([name]) => name === what)?.[3] ?? 0)
    if (passed > (what === 'completed' ? newest - 1 : mostOfStatus(what, cap)))
      for (const more of capped.values()) more.add(what)
  }
  return names.map((name) => ({ ...counts.get(name)!, capped: [...capped.get(name)!] }))
}
