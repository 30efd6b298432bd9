/** Translates a query to an SQL condition, the same for all SQL stores. */
import type { Instant } from '../../core/task.ts'
import type { ViewFilter } from '../../core/views.ts'
import type { Query } from '../store.ts'
import type { Cell } from './rows.ts'

export interface Condition {
  readonly sql: string
  readonly values: readonly Cell[]
}

/** Queries must repeat these texts exactly, or the planner does not use the index. */
export const PARKED = `status = 'pending' and parked_revision = revision`
const NOT_PARKED = 'coalesce(parked_revision, 0) <> revision'

const viewCondition = ({ status, available, retried, parked }: ViewFilter, now: Instant): Condition => ({
  sql: `(status = '${status}'${available === undefined ? '' : available === 'now' ? ' and available_at <= ?' : ' and available_at > ?'}${retried ? ' and retry_count > 0' : ''}${parked === undefined ? '' : ` and ${parked ? 'parked_revision = revision' : NOT_PARKED}`})`,
  values: available === undefined ? [] : [now],
})

/** The lowest id that Holdfast makes at this instant. */
export const firstIdAt = (at: Instant): string => {
  const hex = Math.max(0, at).toString(16).padStart(12, '0')
  return `${hex.slice(0, 8)}-${hex.slice(8)}-0000-0000-000000000000`
}

/** For a longer time span it is cheaper to walk all tasks once than to collect and sort the changes for each page. */
export const LATELY = 600_000

export interface Tagged {
  /** A condition on a tag's name and value. */
  readonly exact: string
  /** A condition that the options contain this text anywhere, which is much cheaper than parsing JSON. */
  readonly has: string
}

/** Values that any JSON encoder writes unescaped. */
const PLAIN = /^[\w .:@-]+$/

const tagCondition = ({ name, value }: NonNullable<Query['tag']>, { exact, has }: Tagged): Condition =>
  PLAIN.test(value)
    ? { sql: `${has} and ${exact}`, values: [value, name, value] }
    : { sql: exact, values: [name, value] }

/** Has a `?` for each value, in order. `tagged` is the store's condition for a tag. */
export const conditionOf = (query: Query, now: Instant, tagged: Tagged): Condition => {
  const views = query.views?.map((view) => viewCondition(view, now))
  const parts: readonly (Condition | false)[] = [
    query.queue !== undefined && { sql: 'queue = ?', values: [query.queue] },
    query.type !== undefined && { sql: 'type = ?', values: [query.type] },
    query.group !== undefined && { sql: 'task_group = ?', values: [query.group] },
    views !== undefined && {
      sql: `(${views.map(({ sql }) => sql).join(' or ') || 'false'})`,
      values: views.flatMap(({ values }) => values),
    },
    query.tag !== undefined && tagCondition(query.tag, tagged),
    query.workerId !== undefined && { sql: `status = 'running' and lease_worker = ?`, values: [query.workerId] },
    query.createdAfter !== undefined && { sql: 'created_at > ?', values: [query.createdAfter] },
    query.createdBefore !== undefined && { sql: 'created_at < ?', values: [query.createdBefore] },
    query.completedBefore !== undefined && { sql: 'completed_at < ?', values: [query.completedBefore] },
    query.updatedAfter !== undefined && { sql: 'updated_at > ?', values: [query.updatedAfter] },
    query.updatedBefore !== undefined && { sql: 'updated_at < ?', values: [query.updatedBefore] },
  ]
  const given = parts.filter((part) => part !== false)
  return { sql: given.map(({ sql }) => sql).join(' and ') || 'true', values: given.flatMap(({ values }) => values) }
}
