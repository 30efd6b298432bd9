/** Looking at the whole: what there is, what it does, what changes. */
import { COUNTED_VIEWS, type WorkerInfo } from '../../index.ts'
import { STATS_CAP } from '../feed.ts'
import type { Route } from '../route.ts'
import { COUNTS, capped, flag, instant, listOf, ref, shape, text } from '../schemas.ts'
import { streamOf } from '../viewing.ts'

const shownWorker = ({ startedAt, beatAt, ...info }: WorkerInfo): Record<string, unknown> => ({
  ...info,
  startedAt: new Date(startedAt).toISOString(),
  beatAt: new Date(beatAt).toISOString(),
})

export const WATCHING: readonly Route[] = [
  {
    method: 'get',
    path: '/info',
    name: 'info',
    summary: 'Which store this is, its time, and what the caller may do',
    right: 'read',
    answer: shape({ address: text('without secrets'), now: instant, readOnly: flag(), rights: listOf(text()) }),
    run: async ({ client, rights, readOnly }) => ({
      address: client.address,
      now: new Date(await client.now()).toISOString(),
      readOnly,
      rights: [...rights],
    }),
  },
  {
    method: 'get',
    path: '/stats',
    name: 'stats',
    summary: 'How many tasks are where: all together, and queue by queue. `capped` names counts that may be more',
    right: 'read',
    answer: shape({ now: instant, totals: shape({ ...COUNTS, capped }), queues: listOf(ref('QueueStats')) }),
    run: async ({ client, showing }) => {
      const [queues, now] = await Promise.all([client.stats({ cap: STATS_CAP }), showing.now()])
      const totals = {
        ...Object.fromEntries(COUNTED_VIEWS.map((view) => [view, queues.reduce((so, queue) => so + queue[view], 0)])),
        capped: COUNTED_VIEWS.filter((view) => queues.some((queue) => queue.capped.includes(view))),
      }
      return { now: new Date(now).toISOString(), totals, queues }
    },
  },
  {
    method: 'get',
    path: '/workers',
    name: 'workers',
    summary: 'Workers that are alive',
    right: 'read',
    answer: shape({ workers: listOf(ref('Worker')) }),
    run: async ({ client }) => ({ workers: (await client.workers()).map(shownWorker) }),
  },
  {
    method: 'get',
    path: '/changes',
    name: 'changes',
    summary:
      'What changes, as server-sent events: single moves (up to 200 at a time), each second in sum, counts by queue',
    right: 'read',
    query: {
      queue: text('only moves in this queue'),
      type: text('only of this type'),
      task: text('only of this task'),
    },
    refuses: ['TOO_MANY_VIEWERS'],
    events: {
      past: shape({ ticks: listOf(ref('Tick')) }),
      tick: ref('Tick'),
      stats: shape({ queues: listOf(ref('QueueStats')) }),
      changes: shape({
        changes: listOf(ref('Change')),
        skipped: { type: 'integer', description: 'so many more there were, not told one by one' },
      }),
    },
    stream: streamOf,
  },
]
