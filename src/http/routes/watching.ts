/** Looking at the whole: what there is, what it does, what changes. */
import type { WorkerInfo } from '../../index.ts'
import type { Route } from '../route.ts'
import { COUNTS, flag, instant, listOf, ref, shape, text } from '../schemas.ts'
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
    summary: 'How many tasks are where: all together, and queue by queue. Counts of waiting tasks end at 100,000',
    right: 'read',
    answer: shape({ now: instant, totals: shape(COUNTS), queues: listOf(ref('QueueStats')) }),
    run: async ({ client, showing }) => {
      const [queues, now] = await Promise.all([client.stats(), showing.now()])
      const sum = (name: string): number =>
        queues.reduce((so, queue) => so + (queue[name as keyof typeof queue] as number), 0)
      const totals = Object.fromEntries(Object.keys(COUNTS).map((name) => [name, sum(name)]))
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
