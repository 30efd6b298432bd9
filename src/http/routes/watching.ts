/** Reads the store as a whole: info, counts, workers, changes. */
import { COUNTED_VIEWS, type WorkerInfo } from '../../index.ts'
import { STATS_CAP } from '../live/feed.ts'
import { streamOf } from '../live/stream.ts'
import type { Route } from '../route.ts'
import { COUNTS, capped, flag, instant, listOf, ref, shape, text } from '../wire/schemas.ts'

const shownWorker = ({ startedAt, beatAt, stuck, ...info }: WorkerInfo): Record<string, unknown> => ({
  ...info,
  startedAt: new Date(startedAt).toISOString(),
  beatAt: new Date(beatAt).toISOString(),
  stuck: { ...stuck, tasks: stuck.tasks.map((task) => ({ ...task, since: new Date(task.since).toISOString() })) },
})

export const WATCHING: readonly Route[] = [
  {
    method: 'get',
    path: '/info',
    name: 'info',
    summary: 'The store, its time, and the rights of the caller',
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
    summary: 'Task counts by status, in total and by queue. `capped` names counts that are lower bounds',
    right: 'read',
    answer: shape({ now: instant, totals: shape({ ...COUNTS, capped }), queues: listOf(ref('QueueStats')) }),
    run: async ({ client, redaction }) => {
      const [queues, now] = await Promise.all([client.stats({ cap: STATS_CAP }), redaction.now()])
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
    summary: 'Live workers',
    right: 'read',
    answer: shape({ workers: listOf(ref('Worker')) }),
    run: async ({ client }) => ({ workers: (await client.workers()).map(shownWorker) }),
  },
  {
    method: 'get',
    path: '/changes',
    name: 'changes',
    summary:
      'Changes as server-sent events: single moves (up to 200 at a time), a summary of each second, counts by queue',
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
        skipped: { type: 'integer', description: 'how many more changes there were' },
      }),
    },
    stream: streamOf,
  },
]
