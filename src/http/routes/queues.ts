/** Queues: their counts, pause and resume. */
import type { PauseOptions } from '../../index.ts'
import { STATS_CAP } from '../live/feed.ts'
import type { Route } from '../route.ts'
import { anything, flag, listOf, ref, shape, text } from '../wire/schemas.ts'

export const QUEUES: readonly Route[] = [
  {
    method: 'get',
    path: '/queues',
    name: 'queues',
    summary: 'Every queue with its counts',
    right: 'read',
    answer: shape({ queues: listOf(ref('QueueStats')) }),
    run: async ({ client }) => ({
      queues: [...(await client.stats({ cap: STATS_CAP }))]
        .sort((a, b) => (a.queue < b.queue ? -1 : 1))
        .map(({ pausedUntil, ...stats }) => ({
          ...stats,
          pausedUntil: pausedUntil === null ? null : new Date(pausedUntil).toISOString(),
        })),
    }),
  },
  {
    method: 'post',
    path: '/queues/{queue}/pause',
    name: 'pauseQueue',
    summary: 'Stops workers from claiming from the queue; running tasks continue. Every worker sees it within 5 s',
    right: 'operate',
    body: shape({}, { reason: text(), until: anything('the pause ends then (ISO 8601); default: it must be resumed') }),
    answer: shape({ queue: text(), paused: flag() }),
    run: async ({ client, params, body }) => {
      await client.queue(params['queue']!).pause(body as PauseOptions)
      return { queue: params['queue'], paused: true }
    },
  },
  {
    method: 'post',
    path: '/queues/{queue}/resume',
    name: 'resumeQueue',
    summary: 'Lets workers claim from the queue again',
    right: 'operate',
    body: shape({}, { force: flag('also if an unfinished move between stores has paused it') }),
    answer: shape({ queue: text(), paused: flag() }),
    refuses: ['MOVE_UNDER_WAY'],
    run: async ({ client, params, body }) => {
      await client.queue(params['queue']!).resume({ force: body['force'] === true })
      return { queue: params['queue'], paused: false }
    },
  },
]
