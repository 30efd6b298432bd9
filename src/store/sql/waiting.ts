/** Queries about waiting tasks, as far as the index that claims walk can answer them: it has queue, type and when they are due. */
import type { Query } from '../store.ts'
import { isOnly } from './statuses.ts'

/** Rows of waiting tasks that one look may read: they lie far apart, unlike the entries of the index. */
export const MOST_READ = 10_000

export const isWaiting = (query: Query): boolean => isOnly(query, 'pending')

/** What the index can tell: for what more is asked, the row has to be read. */
export const indexedPart = ({ queue, type, views = [] }: Query): Query => ({
  ...(queue === undefined ? null : { queue }),
  ...(type === undefined ? null : { type }),
  views: views.map(({ retried: _, ...view }) => view),
})

/** Whether the index has all that is asked for. */
export const isIndexed = ({ queue: _, type: __, views = [], ...others }: Query): boolean =>
  Object.values(others).every((value) => value === undefined) && views.every(({ retried }) => !retried)

/** Per queue, scan at most this many scheduled tasks when counting retries; exact counts pass Infinity. */
export const shareOf = (queues: number, cap: number): number =>
  Math.min(cap, Math.max(100, Math.floor(cap / Math.max(1, queues))))
