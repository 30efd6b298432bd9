/** Reads the store as a whole: info, counts, workers, changes. */
import {
  CHART_COUNTS,
  CHART_RANGES,
  type ChartRange,
  type ChartTotals,
  COUNTED_VIEWS,
  type WorkerInfo,
  type WorkerReading,
} from '../../index.ts'
import { STATS_CAP } from '../live/feed.ts'
import { streamOf } from '../live/stream.ts'
import type { Route } from '../route.ts'
import { shownStats } from '../wire/queue-stats.ts'
import { COUNTS, capped, flag, instant, listOf, ref, shape, text, whole } from '../wire/schemas.ts'

const shownWorker = (
  { startedAt, beatAt, stuck, ...info }: WorkerInfo,
  { seconds, byWorker }: WorkerReading,
): Record<string, unknown> => ({
  ...info,
  recent: { seconds, ...(byWorker.get(info.id) ?? { completed: 0, failed: 0 }) },
  startedAt: new Date(startedAt).toISOString(),
  beatAt: new Date(beatAt).toISOString(),
  stuck: { ...stuck, tasks: stuck.tasks.map((task) => ({ ...task, since: new Date(task.since).toISOString() })) },
})

const percentiles = {
  anyOf: [shape({ p50: whole('milliseconds'), p95: whole('milliseconds') }), { type: 'null' }],
  description: 'null if nothing happened',
} as const
const chartTotals = {
  ...Object.fromEntries(CHART_COUNTS.map((name) => [name, whole()])),
  wait: percentiles,
  run: percentiles,
}
const byName = { type: 'object', additionalProperties: shape(chartTotals) } as const

const flat = ({ counts, wait, run }: ChartTotals): Record<string, unknown> => ({ ...counts, wait, run })
const flatEach = (totals: Readonly<Record<string, ChartTotals>>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(totals).map(([name, of]) => [name, flat(of)]))

export const WATCHING: readonly Route[] = [
  {
    method: 'get',
    path: '/info',
    name: 'info',
    summary: 'The store, its time, and the rights of the caller',
    right: 'read',
    answer: shape({
      address: text('without secrets'),
      now: instant,
      readOnly: flag(),
      rights: listOf(text()),
      name: { type: ['string', 'null'], description: 'who the caller is, in histories' },
      session: flag('the caller is a browser that has logged in with a token, and can log out'),
    }),
    run: async ({ client, rights, readOnly, access }) => ({
      address: client.address,
      now: new Date(await client.now()).toISOString(),
      readOnly,
      rights: [...rights],
      name: access.name ?? null,
      session: access.session !== undefined,
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
      return { now: new Date(now).toISOString(), totals, queues: shownStats(queues) }
    },
  },
  {
    method: 'get',
    path: '/charts',
    name: 'charts',
    summary:
      'What happened in the last 5 minutes, hour, day or week, by slots of time. A slot that is missing was not counted: no server ran',
    right: 'read',
    query: {
      range: { type: 'string', enum: CHART_RANGES, description: 'default 5m' },
      queue: text('only this queue'),
      type: text('only this type'),
    },
    answer: shape({
      step: whole('milliseconds of one slot'),
      from: instant,
      until: instant,
      points: listOf(
        shape({
          at: instant,
          ...chartTotals,
          depth: {
            anyOf: [shape({ ready: whole(), running: whole(), later: whole() }), { type: 'null' }],
            description: 'null if it was not counted in this slot',
          },
        }),
      ),
      queues: { ...byName, description: 'totals of each queue' },
      types: { ...byName, description: 'totals of each type' },
    }),
    run: async ({ charts, query: { range = '5m', ...filter } }) => {
      const { step, from, until, points, queues, types } = await charts.read({ ...filter, range: range as ChartRange })
      return {
        step,
        from: new Date(from).toISOString(),
        until: new Date(until).toISOString(),
        points: points.map(({ at, depth, ...totals }) => ({ at: new Date(at).toISOString(), ...flat(totals), depth })),
        queues: flatEach(queues),
        types: flatEach(types),
      }
    },
  },
  {
    method: 'get',
    path: '/doctor',
    name: 'doctor',
    summary:
      'What is wrong and how to fix it, as `holdfast doctor` says it, without the checks of the store itself; some seconds old at most',
    right: 'read',
    answer: shape({
      at: instant,
      findings: listOf(
        shape({
          check: text(),
          verdict: { type: 'string', enum: ['warning', 'problem'] },
          found: text('one sentence'),
          fix: { type: ['string', 'null'] },
        }),
      ),
      oldest: {
        anyOf: [shape({ queue: text(), since: instant }), { type: 'null' }],
        description: 'the task that has waited longest',
      },
    }),
    run: async ({ health }) => {
      const { at, findings, oldest } = await health.read()
      return {
        at: new Date(at).toISOString(),
        findings,
        oldest: oldest === null ? null : { queue: oldest.queue, since: new Date(oldest.since).toISOString() },
      }
    },
  },
  {
    method: 'get',
    path: '/workers',
    name: 'workers',
    summary: 'Live workers',
    right: 'read',
    answer: shape({ workers: listOf(ref('Worker')) }),
    run: async ({ client, charts }) => {
      const [workers, recent] = await Promise.all([client.workers(), charts.workers()])
      return { workers: workers.map((worker) => shownWorker(worker, recent)) }
    },
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
