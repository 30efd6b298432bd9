/** Lists and counts that scan a bounded number of tasks: by an index if one leads to the matches, otherwise among the newest tasks. */
import { isLastPage } from '../../../core/page-weight.ts'
import type { Instant } from '../../../core/task.ts'
import type { CountedView } from '../../../core/views.ts'
import { COLUMNS, decodeWhole, type Row } from '../../sql/rows.ts'
import { isOnly, isRare, RARE } from '../../sql/statuses.ts'
import { indexedPart, isIndexed, isWaiting, MOST_READ, shareOf } from '../../sql/waiting.ts'
import type { Counted, Page, Query, QueueCounts, TaskList } from '../../store.ts'
import type { Executor, Value } from '../connection.ts'
import { cutToWeight, listTasks, NOW, numbered, whereOf } from './query.ts'

/** These queries match few tasks and have an index. */
const isFew = (query: Query): boolean => query.workerId !== undefined || isOnly(query, 'running') || isRare(query)

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
  const edge = await edgeOf(executor, schema, page.after, maxScanned)
  if (edge === null) return all()
  const { sql, values } = whereOf(query, page.now)
  const [beyond, after]: [string, Value[]] = page.after === undefined ? ['', []] : [' and id < ?::uuid', [page.after]]
  const rows = await executor.query(
    numbered(
      cutToWeight(
        `select ${COLUMNS} from ${schema}.task where ${sql}${beyond} and id >= ?::uuid order by id desc limit ?`,
        'id desc',
      ),
    ),
    [...values, ...after, edge, page.limit],
  )
  const tasks = rows.map((row) => decodeWhole(row as Row))
  if (!isLastPage(tasks, page.limit)) return { tasks, stoppedAt: null }
  // If the newest tasks have few matches, pending tasks are found by their index.
  if (isWaiting(query)) return waitingTasks(executor, schema, query, page)
  return { tasks, stoppedAt: edge }
}

/**
 * The newest pending tasks. Candidates come from the index; their rows are read until the page is full. Sorted by the id as
 * text, which is the same order: sorted by the id itself, the planner would walk all tasks.
 */
const waitingTasks = async (
  executor: Executor,
  schema: string,
  query: Query,
  { limit, after, now }: Page,
): Promise<TaskList> => {
  const indexed = whereOf(indexedPart(query), now)
  const [beyond, from]: [string, Value[]] = after === undefined ? ['', []] : [' and id < ?::uuid', [after]]
  const ids = `select id as newest_id from ${schema}.task where status = 'pending' and ${indexed.sql}${beyond} order by id::text collate "C" desc limit ${MOST_READ}`
  const given = [...indexed.values, ...from]
  const { sql, values } = whereOf(query, now)
  const rows = await executor.query(
    numbered(
      // `offset 0` keeps the planner from swapping the join: one row is read per id, in order.
      cutToWeight(
        `select ${COLUMNS} from (${ids}) as newest cross join lateral (select * from ${schema}.task where id = newest_id and ${sql} offset 0) as task order by newest_id::text collate "C" desc limit ?`,
        'id desc',
      ),
    ),
    [...given, ...values, limit],
  )
  const tasks = rows.map((row) => decodeWhole(row as Row))
  if (!isLastPage(tasks, limit)) return { tasks, stoppedAt: null }
  const [last] = await executor.query(
    numbered(`select newest_id from (${ids}) as newest offset ${MOST_READ - 1}`),
    given,
  )
  return { tasks, stoppedAt: (last?.[0] as string | undefined) ?? null }
}

/** The id of the last of `maxScanned` tasks, going down from `after`; null if there are fewer. */
const edgeOf = async (
  executor: Executor,
  schema: string,
  after: string | undefined,
  maxScanned: number,
): Promise<string | null> => {
  const [beyond, from]: [string, Value[]] = after === undefined ? ['', []] : ['where id < ?::uuid', [after]]
  const [row] = await executor.query(
    numbered(`select id from ${schema}.task ${beyond} order by id desc offset ? limit 1`),
    [...from, maxScanned - 1],
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
  const { sql, values } = whereOf(query, now)
  // Scans the tasks that an index finds; without such an index, the newest tasks.
  const base = isFew(query) ? query : isWaiting(query) ? indexedPart(query) : null
  const passed = base === null ? { sql: 'true', values: [] } : whereOf(base, now)
  const order = base === null ? 'order by id desc' : ''
  if (isWaiting(query) && isIndexed(query)) {
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
      `select '${status}', queue, count(*), sum(count(*)) over (), 0 from (select queue from ${task} where status = '${status}' and status not in ('pending', 'running', 'completed') order by id desc limit ${mostOfStatus(status, cap) + 1}) as looked group by queue`,
  )
  return [
    `select 'waiting' as what, q.name as queue, ready.n as a, later.n as b, retrying.n as c from unnest($1::text[]) as q(name)
      cross join lateral (select count(*) as n from (select 1 from ${task} where status = 'pending' and queue = q.name and available_at <= ${now} limit $2) as looked) as ready
      cross join lateral (select count(*) as n from (select 1 from ${task} where status = 'pending' and queue = q.name and available_at > ${now} limit $2) as looked) as later
      cross join lateral (select count(*) filter (where retry_count > 0) as n from (select retry_count from ${task} where status = 'pending' and queue = q.name and available_at > ${now} limit $4) as looked) as retrying`,
    `select 'running', queue, count(*), 0, 0 from ${task} where status = 'running' group by queue`,
    ...sparse,
    `select 'completed', queue, count(*) filter (where status = 'completed'), sum(count(*)) over (), 0 from (select queue, status from ${task} order by id desc limit $3) as looked group by queue`,
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
  const none = { ready: 0, scheduled: 0, retrying: 0, running: 0, completed: 0, failed: 0 }
  const counts = new Map(names.map((name) => [name, { ...none, cancelled: 0, expired: 0, archived: 0 }]))
  const capped = new Map(names.map((name) => [name, new Set<CountedView>()]))
  for (const [what, queue, a, b, c] of rows as [string, string, ...(string | number)[]][]) {
    const [found, more] = [counts.get(queue), capped.get(queue)]
    if (found === undefined || more === undefined) continue
    const [first, second, third] = [Number(a), Number(b), Number(c)]
    if (what !== 'waiting') {
      found[what as 'running'] = first
      continue
    }
    Object.assign(found, {
      ready: Math.min(first, cap),
      scheduled: Math.min(second, mostRead) - third,
      retrying: third,
    })
    if (first > cap) more.add('ready')
    if (second > mostRead) more.add('scheduled').add('retrying')
  }
  // If counting a status stopped early, any queue may have more of them.
  for (const what of ['completed', ...RARE] as const) {
    const passed = Number(rows.find(([name]) => name === what)?.[3] ?? 0)
    if (passed > (what === 'completed' ? newest - 1 : mostOfStatus(what, cap)))
      for (const more of capped.values()) more.add(what)
  }
  return names.map((name) => ({ ...counts.get(name)!, capped: [...capped.get(name)!] }))
}
