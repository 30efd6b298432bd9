/** Queues: what waits in them, and whether workers take from them. */
import { STATS_CAP } from '../feed.ts'
import type { Route } from '../route.ts'
import { flag, listOf, ref, shape, text } from '../schemas.ts'

export const QUEUES: readonly Route[] = [
  {
    method: 'get',
    path: '/queues',
    name: 'queues',
    summary: 'Every queue with its counts',
    right: 'read',
    answer: shape({ queues: listOf(ref('QueueStats')) }),
    run: async ({ client }) => ({
      queues: [...(await client.stats({ cap: STATS_CAP }))].sort((a, b) => (a.queue < b.queue ? -1 : 1)),
    }),
  },
  {
    method: 'post',
    path: '/queues/{queue}/pause',
    name: 'pauseQueue',
    summary: 'Workers take no more tasks from it; running ones go on. Seen by every worker within 5 s',
    right: 'operate',
    body: shape({}, { reason: text() }),
    answer: shape({ queue: text(), paused: flag() }),
    run: async ({ client, params, body }) => {
      const { reason } = body as { readonly reason?: string }
      await client.queue(params['queue']!).pause(reason === undefined ? {} : { reason })
      return { queue: params['queue'], paused: true }
    },
  },
  {
    method: 'post',
    path: '/queues/{queue}/resume',
    name: 'resumeQueue',
    summary: 'Workers take tasks from it again',
    right: 'operate',
    body: shape({}, { force: flag('also when an unfinished move between stores holds it') }),
    answer: shape({ queue: text(), paused: flag() }),
    refuses: ['MOVE_UNDER_WAY'],
    run: async ({ client, params, body }) => {
      await client.queue(params['queue']!).resume({ force: body['force'] === true })
      return { queue: params['queue'], paused: false }
    },
  },
]
