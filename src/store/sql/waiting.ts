/** Queries about pending tasks that the index for claims can answer: it has queue, type and due time. */
import type { ViewFilter } from '../../core/views.ts'
import type { Counted, Query } from '../store.ts'
import { isOnly } from './statuses.ts'

/** The most rows of pending tasks that one query may read: unlike index entries, they are scattered. */
export const MOST_READ = 10_000

/** Where the index answers the whole query, the table is scanned only this far: a page is found there at once, or not at all. */
const DENSE = 1_000

/** The index of pending tasks answers the whole query. */
export const isAnsweredByIndex = (query: Query): boolean => isWaiting(query) && isIndexed(query)

/** How far the table is scanned before the index is asked. */
export const scanned = (query: Query, maxScanned: number): number =>
  isAnsweredByIndex(query) ? Math.min(maxScanned, DENSE) : maxScanned

/** How many candidates the index gives for one page. */
export const mostCandidates = (query: Query, limit: number): number => (isAnsweredByIndex(query) ? limit : MOST_READ)

export const isWaiting = (query: Query): boolean => isOnly(query, 'pending')

/** The part of a query that the index can answer. For the rest, rows must be read. */
export const indexedPart = ({ queue, type, views = [] }: Query): Query => ({
  ...(queue === undefined ? null : { queue }),
  ...(type === undefined ? null : { type }),
  views: views.map(({ retried: _, parked: __, ...view }) => view),
})

/** Whether the index can answer the whole query. */
export const isIndexed = ({ queue: _, type: __, views = [], ...others }: Query): boolean =>
  Object.values(others).every((value) => value === undefined) &&
  views.every(({ retried, parked }) => !retried && parked === undefined)

/** Only parked tasks, which have an index of their own. */
export const isParked = ({ views = [] }: Query): boolean =>
  views.length > 0 && views.every(({ parked }) => parked === true)

/** Tasks due later that are not parked: as the index for claims does not tell them apart, the parked ones are counted and subtracted. */
const isLater = ({ available, retried, parked }: ViewFilter): boolean =>
  available === 'later' && !retried && parked === false

export const countLater = <T extends Counted | Promise<Counted>>(
  query: Query,
  count: (query: Query) => T,
): { readonly all: T; readonly parked: T } | null => {
  const { views = [] } = query
  if (views.length !== 1 || !views.every(isLater)) return null
  const { parked: _, ...later } = views[0]!
  return {
    all: count({ ...query, views: [later] }),
    parked: count({ ...query, views: [{ ...later, parked: true }] }),
  }
}

export const laterWithout = (all: Counted, parked: Counted): Counted => ({
  count: Math.max(0, all.count - parked.count),
  capped: all.capped,
})

/** Per queue, scan at most this many scheduled tasks when counting retries; exact counts pass Infinity. */
export const shareOf = (queues: number, cap: number): number =>
  Math.min(cap, Math.max(100, Math.floor(cap / Math.max(1, queues))))
