/** Glances at a store that has none of its own: all of it is looked at, as far as the caps allow. */
import { COUNTED_VIEWS, type CountedView, viewFilter } from '../core/views.ts'
import type { Counted, Glance, Query, QueueCounts, Store } from './store.ts'

export const glanceOf = (store: Store): Glance => store.glance ?? plainGlance(store)

const plainGlance = (store: Store): Glance => {
  const count: Glance['count'] = async (query, cap, _, now): Promise<Counted> => {
    const counted = await store.count(query, cap + 1, now)
    return { count: Math.min(counted, cap), capped: counted > cap }
  }
  const countQueue = async (queue: string, cap: number, now: number | null): Promise<QueueCounts> => {
    const of = async (view: CountedView): Promise<readonly [CountedView, Counted]> => {
      const query: Query = { queue, views: [viewFilter(view)] }
      return [view, await count(query, cap, cap, now)]
    }
    const found = new Map(await Promise.all(COUNTED_VIEWS.map(of)))
    const later = found.get('scheduled')!
    const retrying = found.get('retrying')!
    const numbers = Object.fromEntries([...found].map(([view, { count: n }]) => [view, n])) as Record<
      CountedView,
      number
    >
    return {
      ...numbers,
      // A retrying task is scheduled, too.
      scheduled: Math.max(0, later.count - retrying.count),
      capped: [...found].flatMap(([view, { capped }]) => (capped ? [view] : [])),
    }
  }
  return {
    list: async (query, page) => ({ tasks: await store.list(query, { ...page, order: 'newest' }), stoppedAt: null }),
    count,
    queues: (names, cap, now) => Promise.all(names.map((name) => countQueue(name, cap, now))),
  }
}
