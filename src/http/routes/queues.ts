/** Queues: their counts, pause and resume, limits. */
import type { LimitOptions, PauseOptions, ResumeOptions } from '../../index.ts'
import { STATS_CAP } from '../live/feed.ts'
import type { Route } from '../route.ts'
import { anything, flag, LIMITS, listOf, maybeLimits, ref, shape, text } from '../wire/schemas.ts'

/** `group` only if the pause is that of a group. */
const paused = shape({ queue: text(), paused: flag() }, { group: text() })
const groupIn = ({ group }: PauseOptions): object => (group === undefined ? {} : { group })

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
    body: shape(
      {},
      {
        reason: text(),
        until: anything('the pause ends then (ISO 8601); default: it must be resumed'),
        group: text('only the tasks of this group'),
      },
    ),
    answer: paused,
    run: async ({ client, params, body }) => {
      await client.queue(params['queue']!).pause(body as PauseOptions)
      return { queue: params['queue'], ...groupIn(body), paused: true }
    },
  },
  {
    method: 'post',
    path: '/queues/{queue}/resume',
    name: 'resumeQueue',
    summary: 'Lets workers claim from the queue again',
    right: 'operate',
    body: shape(
      {},
      {
        force: flag('also if an unfinished move between stores has paused it'),
        group: text('only the pause of this group'),
      },
    ),
    answer: paused,
    refuses: ['MOVE_UNDER_WAY'],
    run: async ({ client, params, body }) => {
      await client.queue(params['queue']!).resume(body as ResumeOptions)
      return { queue: params['queue'], ...groupIn(body), paused: false }
    },
  },
  {
    method: 'post',
    path: '/queues/{queue}/limit',
    name: 'limitQueue',
    summary:
      'Limits the queue over all workers, in place of its limits before; an empty body removes them. Seen within 5 s',
    right: 'operate',
    body: shape({}, LIMITS),
    answer: shape({ queue: text(), limits: maybeLimits }),
    refuses: ['INVALID_DURATION'],
    run: async ({ client, params, body }) => {
      const queue = client.queue(params['queue']!)
      await queue.limit(Object.keys(body).length === 0 ? null : (body as LimitOptions))
      return { queue: params['queue'], limits: await queue.limits() }
    },
  },
]
