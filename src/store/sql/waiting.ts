/** Queries about pending tasks that the index for claims can answer: it has queue, type and due time. */
import type { Query } from '../store.ts'
import { isOnly } from './statuses.ts'

/** The most rows of pending tasks that one query may read: unlike index entries, they are scattered. */
export const MOST_READ = 10_000

export const isWaiting = (query: Query): boolean => isOnly(query, 'pending')

/** The part of a query that the index can answer. For the rest, rows must be read. */
export const indexedPart = ({ queue, type, views = [] }: Query): Query => ({
  ...(queue === undefined ? null : { queue }),
  ...(type === undefined ? null : { type }),
  views: views.map(({ retried: _, ...view }) => view),
})

/** Whether the index can answer the whole query. */
export const isIndexed = ({ queue: _, type: __, views = [], ...others }: Query): boolean =>
  Object.values(others).every((value) => value === undefined) && views.every(({ retried }) => !retried)

/** Per queue, scan at most this many scheduled tasks when counting retries; exact counts pass Infinity. */
export const shareOf = (queues: number, cap: number): number =>
  Math.min(cap, Math.max(100, Math.floor(cap / Math.max(1, queues))))
