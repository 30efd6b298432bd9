/** The counts of queues, including those of a store that counts one query at a time. */
import { COUNTED_VIEWS, type CountedView, viewFilter } from '../core/views.ts'
import type { Counted, Instant, QueueCounts, Store } from './store.ts'

export const countQueues = async (
  store: Store,
  names: readonly string[],
  cap: number,
  now: Instant | null,
): Promise<readonly QueueCounts[]> =>
  store.countQueues?.(names, cap, now) ?? Promise.all(names.map((name) => countQueue(store, name, cap, now)))

const countQueue = async (store: Store, queue: string, cap: number, now: Instant | null): Promise<QueueCounts> => {
  const countView = async (view: CountedView): Promise<readonly [CountedView, Counted]> => [
    view,
    await store.count({ queue, views: [viewFilter(view)] }, { cap, now }),
  ]
  const found = new Map(await Promise.all(COUNTED_VIEWS.map(countView)))
  const counts = Object.fromEntries([...found].map(([view, { count }]) => [view, count])) as Record<CountedView, number>
  return {
    ...counts,
    // The filter of scheduled tasks matches retrying tasks too.
    scheduled: Math.max(0, counts.scheduled - counts.retrying),
    capped: [...found].flatMap(([view, { capped }]) => (capped ? [view] : [])),
  }
}
