/** Queues: their counts, pause and resume, limits. */
import { HoldfastError, type LimitOptions, type PauseOptions, type ResumeOptions, type Task } from '../../index.ts'
import { STATS_CAP } from '../live/feed.ts'
import { waitingSince } from '../live/waiting-since.ts'
import type { Route } from '../route.ts'
import { HttpError } from '../wire/errors.ts'
import { MAX_SCANNED } from '../wire/queries.ts'
import { shownStats } from '../wire/queue-stats.ts'
import { anything, flag, LIMITS, listOf, maybeLimits, ref, shape, text, whole } from '../wire/schemas.ts'

/** `group` only if the pause is that of a group. */
const paused = shape({ queue: text(), paused: flag() }, { group: text() })
interface LimitBody extends LimitOptions {
  readonly none?: boolean
}

/** An empty body is refused: a client that lost its fields must not lift the limits of a queue. */
const limitsIn = ({ none, ...limits }: LimitBody): LimitOptions | null => {
  const isGiven = Object.keys(limits).length > 0
  if (none === true && isGiven)
    throw new HoldfastError('INVALID_OPTION', 'none removes all limits: give no others with it', { field: 'none' })
  if (none !== true && !isGiven)
    throw new HoldfastError(
      'INVALID_OPTION',
      'the body names no limit: give at least one, or "none": true to remove all',
      {
        field: 'limit',
      },
    )
  return none === true ? null : limits
}

const groupIn = ({ group }: PauseOptions): object => (group === undefined ? {} : { group })

const MOST_HOLDERS = 200

const holdersOf = (running: readonly Task[]): readonly object[] => {
  const groups = new Map<string | null, { running: number; readonly workers: Set<string> }>()
  for (const { group, lease } of running) {
    const held = groups.get(group) ?? { running: 0, workers: new Set() }
    groups.set(group, held)
    held.running++
    if (lease !== null) held.workers.add(lease.workerId)
  }
  return [...groups]
    .map(([group, held]) => ({ group, running: held.running, workers: [...held.workers].sort() }))
    .sort((a, b) => b.running - a.running)
}

export const QUEUES: readonly Route[] = [
  {
    method: 'get',
    path: '/queues',
    name: 'queues',
    summary: 'Every queue with its counts',
    right: 'read',
    answer: shape({ queues: listOf(ref('QueueStats')) }),
    run: async ({ client }) => ({
      queues: shownStats([...(await client.stats({ cap: STATS_CAP }))].sort((a, b) => (a.queue < b.queue ? -1 : 1))),
    }),
  },
  {
    method: 'get',
    path: '/queues/{queue}',
    name: 'getQueue',
    summary:
      'One queue: its counts, pauses and limits, who holds its running tasks, and since when the first ready task waits',
    right: 'read',
    answer: shape({
      queue: ref('QueueStats'),
      oldestReady: {
        type: ['string', 'null'],
        format: 'date-time',
        description: 'since when the first ready task waits',
      },
      holders: listOf(
        shape({
          group: { type: ['string', 'null'], description: 'null: tasks without a group' },
          running: whole(),
          workers: listOf(text()),
        }),
      ),
      isMore: flag('more tasks run than were read'),
    }),
    refuses: ['QUEUE_NOT_FOUND'],
    run: async ({ client, params }) => {
      const name = params['queue']!
      const [stats, since, running] = await Promise.all([
        client.stats({ cap: STATS_CAP }),
        waitingSince(client, { queue: name }),
        client.list({ queue: name, status: 'running', order: 'oldest', limit: MOST_HOLDERS, maxScanned: MAX_SCANNED }),
      ])
      const queue = stats.find((one) => one.queue === name)
      if (queue === undefined) throw new HttpError('QUEUE_NOT_FOUND', `no queue '${name}' was ever used`)
      return {
        queue: shownStats([queue])[0],
        oldestReady: since === null ? null : new Date(since).toISOString(),
        holders: holdersOf(running.tasks),
        isMore: running.cursor !== null,
      }
    },
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
    summary: 'Limits the queue over all workers, replacing its earlier limits. Seen within 5 s',
    right: 'operate',
    body: shape({}, { ...LIMITS, none: flag('removes all limits; alone') }),
    answer: shape({ queue: text(), limits: maybeLimits }),
    refuses: ['INVALID_DURATION'],
    run: async ({ client, params, body }) => {
      const queue = client.queue(params['queue']!)
      await queue.limit(limitsIn(body as LimitBody))
      return { queue: params['queue'], limits: await queue.limits() }
    },
  },
]
