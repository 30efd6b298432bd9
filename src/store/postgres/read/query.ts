/** Reads by id, key and page, and counts. */
import type { KeyRecord } from '../../../core/idempotency.ts'
import { PAGE_WEIGHT } from '../../../core/storage/page-weight.ts'
import type { Instant, TaskRecord } from '../../../core/task.ts'
import { type Condition, conditionOf, firstIdAt, LATELY, type Tagged } from '../../sql/conditions.ts'
import { type Cell, COLUMNS, COLUMNS_WITH_HISTORY, decodeWhole, type Row } from '../../sql/rows.ts'
import { isRare } from '../../sql/statuses.ts'
import type { Page, Query } from '../../store.ts'
import type { Executor } from '../connection.ts'
import { AT_REST, MOVED } from '../schema.ts'
import { withJournals } from '../write/journal.ts'

/** In the order of the ids; null where there is no task. */
export const getTasks = async (
  executor: Pick<Executor, 'query'>,
  schema: string,
  ids: readonly string[],
): Promise<(TaskRecord | null)[]> => {
  const rows = await executor.query(`select ${COLUMNS_WITH_HISTORY} from ${schema}.task where id = any($1::uuid[])`, [
    ids,
  ])
  const found = await withJournals(
    executor,
    schema,
    rows.map((row) => decodeWhole(row as Row)),
  )
  const tasks = new Map(found.map((task) => [task.id, task]))
  return ids.map((id) => tasks.get(id) ?? null)
}

const KEY_WIDTH = 5

export const findKeys = async (
  executor: Executor,
  schema: string,
  keys: readonly string[],
  lock = '',
): Promise<{ key: KeyRecord; task: TaskRecord | null }[]> => {
  const columns = COLUMNS_WITH_HISTORY.split(', ')
    .map((column) => `t.${column} as of_task_${column}`)
    .join(', ')
  const rows = await executor.query(
    `select k.key, k.task_id, k.hash, k.expires_at, k.exact, ${columns} from ${schema}.key k left join ${schema}.task t on t.id = k.task_id where k.key = any($1::text[])${lock}`,
    [keys],
  )
  const tasks = await withJournals(
    executor,
    schema,
    rows.map((row) => (row[KEY_WIDTH] === null ? null : decodeWhole(row.slice(KEY_WIDTH) as Row))),
  )
  return rows.map((row, i) => {
    const [key, taskId, hash, expiresAt, exact] = row as [string, string, string, number | string, boolean]
    return { key: { key, taskId, hash, expiresAt: Number(expiresAt), exact }, task: tasks[i]! }
  })
}

const TAGGED: Tagged = {
  exact: `(options::json -> 'tags' ->> ?) = ?`,
  has: 'strpos(options, ?) > 0',
}
/** Stable within the statement and a bigint, so that an index can be used. */
export const NOW = `floor(extract(epoch from statement_timestamp()) * 1000)::bigint`

/** Replaces `?` by $1, $2, …. The text has no other question marks, because all values are bound. */
export const numbered = (sql: string): string => {
  let n = 0
  return sql.replaceAll('?', () => `$${++n}`)
}

/** Lets the planner use the index of rare statuses. */
const SPARSE = ` and status not in ('pending', 'running', 'completed')`

export const whereOf = (query: Query, now: Instant | null): Condition => {
  const { sql, values } = conditionOf(query, now ?? Number.NaN, TAGGED)
  const sparse = isRare(query) ? SPARSE : ''
  if (now !== null) return { sql: sql + sparse, values }
  // The server's clock is used in place of a bound instant.
  const kept: Cell[] = []
  let n = 0
  const timed = sql.replaceAll('?', () => {
    const value = values[n++]!
    if (Number.isNaN(value)) return NOW
    kept.push(value)
    return '?'
  })
  return { sql: timed + sparse, values: kept }
}

const isLately = ({ updatedAfter }: Query, now: Instant): boolean =>
  updatedAfter !== undefined && updatedAfter >= now - LATELY

/**
 * Recent changes, in parts. Each part uses an index that exists anyway or that costs a completed task nothing. No task is in two parts,
 * so the first rows of each part contain the first rows of all.
 */
const changedLately = (
  schema: string,
  { updatedAfter = 0, updatedBefore = Number.MAX_SAFE_INTEGER }: Query,
  where: Condition,
  order: string,
  limit: number,
): Condition => {
  const ids = (which: string): string => `select id from ${schema}.task where ${which} and ${where.sql}`
  const first = `order by id ${order} limit ?`
  // `offset 0` keeps the planner from walking all tasks by id to get the order.
  const sorted = (which: string): string => `(select id from (${ids(which)} offset 0) as part ${first})`
  const parts: readonly Condition[] = [
    { sql: sorted(MOVED), values: [] },
    { sql: sorted(`status = 'running'`), values: [] },
    {
      sql: sorted(`status = 'completed' and updated_at = completed_at and completed_at > ? and completed_at < ?`),
      values: [updatedAfter, updatedBefore],
    },
    {
      sql: `(${ids(`id >= ?::uuid and revision = 1 and ${AT_REST}`)} ${first})`,
      values: [firstIdAt(updatedAfter)],
    },
  ]
  return {
    sql: `id = any(array(select id from (${parts.map(({ sql }) => sql).join(' union all ')}) as changed ${first}))`,
    values: [...parts.flatMap(({ values }) => [...values, ...where.values, limit]), limit],
  }
}

/** PostgreSQL knows the sizes of large values without reading them. */
const WEIGHT = `octet_length(input) + coalesce(octet_length(output), 0) + coalesce(octet_length(progress), 0)`

/** Cuts a statement that selects COLUMNS after the row with which the page reaches PAGE_WEIGHT. */
export const cutToWeight = (text: string, order: string): string => `
  select ${COLUMNS} from (
    select *, sum(${WEIGHT}) over (order by ${order} rows between unbounded preceding and 1 preceding) as weight_before from (${text}) as page
  ) as weighed where weight_before is null or weight_before < ${PAGE_WEIGHT} order by ${order}`

export const listTasks = async (
  executor: Executor,
  schema: string,
  query: Query,
  { order, limit, after, now }: Page,
): Promise<TaskRecord[]> => {
  const { sql, values } = whereOf(query, now)
  const direction = order === 'oldest' ? 'asc' : 'desc'
  const where: Condition =
    after === undefined
      ? { sql, values }
      : { sql: `${sql} and id ${order === 'oldest' ? '>' : '<'} ?::uuid`, values: [...values, after] }
  const found = isLately(query, now ?? Date.now()) ? changedLately(schema, query, where, direction, limit) : where
  const text = `select ${COLUMNS} from ${schema}.task where ${found.sql} order by id ${direction} limit ?`
  const rows = await executor.query(numbered(cutToWeight(text, `id ${direction}`)), [...found.values, limit])
  return rows.map((row) => decodeWhole(row as Row))
}

export const countTasks = async (
  executor: Executor,
  schema: string,
  query: Query,
  cap: number,
  now: Instant | null,
): Promise<number> => {
  const { sql, values } = whereOf(query, now)
  const [row] = await executor.query(
    numbered(`select count(*) from (select 1 from ${schema}.task where ${sql} limit ?) as counted`),
    [...values, cap],
  )
  return Number(row![0])
}
