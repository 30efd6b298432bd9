/** Turns moves into metrics, of this process or of the whole store. */
import { type Channel, channel } from 'node:diagnostics_channel'
import { Registry } from '@prometheus-io/client'
import { checkOptionNames } from '../core/values/option-names.ts'
import {
  type Client,
  COUNTED_VIEWS,
  type HistoryEntry,
  HoldfastError,
  isHoldfastError,
  type MoveEvent,
  type QueueStats,
  RUN_ENDS,
  startsPerSecond,
  type Task,
  type TaskChange,
  type WorkerInfo,
} from '../index.ts'
import { Expirations } from './expirations.ts'
import { type Counted, type Instruments, makeInstruments } from './instruments.ts'

/** Options of `createMetrics`. */
export interface MetricsOptions {
  /**
   * `process` (default): the moves of this client, so each worker reports its own. `store`: the moves of all processes, found by
   * following the store from the first scrape on.
   */
  readonly of?: 'process' | 'store'
  /** With `store`: an existing follower of the store that reports every change. Default: a separate follower. */
  readonly follow?: (listener: (change: TaskChange) => void) => () => void
  /** Where the metrics are registered. Default: a new registry. */
  readonly registry?: Registry
}

const OPTIONS: ReadonlySet<string> = new Set<keyof MetricsOptions>(['of', 'follow', 'registry'])

/** Metrics of a client as text for Prometheus. */
export interface Metrics {
  /** To add metrics of your own. */
  readonly registry: Registry
  /** The response for a scraper. */
  text(): Promise<{ readonly type: string; readonly text: string }>
  /** Stops counting what this process does. */
  close(): void
}

type Move = Pick<HistoryEntry, 'move' | 'at' | 'to' | 'delay'>

/** How many existing pending tasks are read once at the start to find those that will expire. */
const SEEDED = 5_000
const PAGE = 1_000
/** How many of the tasks near expiration are read again at each scrape. Without a bound a scrape would cost most when the store is busiest. */
const LOOKED_AT_AGAIN = 500
const AT_ONCE = 50

/** Makes Prometheus metrics of a client. */
export const createMetrics = (client: Client, options: MetricsOptions = {}): Metrics => {
  checkOptionNames(options, OPTIONS, 'createMetrics')
  const { of = 'process', follow = following(client), registry = new Registry() } = options
  if (of !== 'process' && of !== 'store')
    throw new HoldfastError('INVALID_OPTION', "of must be 'process' or 'store'", { field: 'of' })
  const instruments = makeInstruments(registry)
  const expirations = new Expirations()
  const count = (move: Move, task: Task): void => {
    expirations.see(task)
    tally(instruments, move, task)
  }
  let started: Promise<void> | null = null
  let stopFollowing = (): void => {}
  const start = (): Promise<void> => {
    if (of === 'store') stopFollowing = follow(({ entry, task }) => count(entry, task))
    return seed(client, expirations)
  }
  const stopMoves = of === 'process' ? client.onMove((event) => count(moveOf(event), event.task)) : () => {}
  const stopStale = heard<{ readonly task: Labelled }>('holdfast:stale-write', ({ task }) =>
    instruments.staleWrites.inc(labelsOf(task)),
  )
  const stopStuck =
    of === 'process'
      ? heard<{ readonly task: Labelled; readonly change: number }>('holdfast:stuck', ({ task, change }) =>
          instruments.stuck.inc(labelsOf(task), change),
        )
      : () => {}
  /** Concurrent scrapes share one count. */
  let counting: Promise<QueueStats[]> | null = null
  return {
    registry,
    text: async () => {
      started ??= start()
      await started
      counting ??= client.stats().finally(() => {
        counting = null
      })
      const queues = await counting
      setDepth(instruments, queues)
      setLimits(instruments, queues)
      if (of === 'store') setStuck(instruments, await client.workers())
      const now = await client.now()
      if (of === 'process') await lookAgain(client, expirations, expirations.idsNear(now, LOOKED_AT_AGAIN))
      instruments.nearExpiration.reset()
      for (const { type, queue, count: near } of expirations.near(now))
        instruments.nearExpiration.set({ task_type: type, queue }, near)
      return { type: registry.contentType, text: await registry.metrics() }
    },
    close: () => {
      stopFollowing()
      stopMoves()
      stopStale()
      stopStuck()
    },
  }
}

/** Reads tasks again, because another process may have run them, and its moves are not visible here. */
const lookAgain = async (client: Client, expirations: Expirations, ids: readonly string[]): Promise<void> => {
  for (let from = 0; from < ids.length; from += AT_ONCE) {
    const some = ids.slice(from, from + AT_ONCE)
    await Promise.all(
      some.map((id) =>
        client.get(id).then(
          (task) => expirations.see(task),
          (error: unknown) => {
            // Removed by retention. Any other error says nothing about the task.
            if (isHoldfastError(error, 'TASK_NOT_FOUND')) expirations.forget(id)
          },
        ),
      ),
    )
  }
}

const following =
  (client: Client): NonNullable<MetricsOptions['follow']> =>
  (listener) => {
    const stop = new AbortController()
    const follow = async (): Promise<void> => {
      for await (const change of client.changes({ signal: stop.signal })) listener(change)
    }
    // Ends when the client is closed. Store errors are reported elsewhere.
    follow().catch(() => {})
    return () => stop.abort()
  }

const moveOf = ({ move, at, task }: MoveEvent): Move => {
  const entry = task.history.at(-1)
  return { ...(entry?.move === move ? entry : null), move, at, to: task.status }
}

type Labelled = { readonly type: string; readonly queue: string }
const labelsOf = ({ type, queue }: Labelled) => ({ task_type: type, queue })

/** Refused writes and stuck handlers are not moves: they are published on diagnostics channels of this process. */
const heard = <Message>(name: string, listener: (message: Message) => void): (() => void) => {
  const published: Channel = channel(name)
  const hear = (message: unknown): void => listener(message as Message)
  published.subscribe(hear)
  return () => published.unsubscribe(hear)
}

/** Counts at most a hundred per worker, because its registration lists no more. */
const setStuck = ({ stuck }: Instruments, workers: readonly WorkerInfo[]): void => {
  stuck.reset()
  for (const worker of workers) for (const task of worker.stuck.tasks) stuck.inc(labelsOf(task))
}

const seed = async (client: Client, expirations: Expirations): Promise<void> => {
  let cursor: string | null = null
  for (let seen = 0; seen < SEEDED; seen += PAGE) {
    const page: Awaited<ReturnType<Client['list']>> = await client.list({
      status: 'pending',
      order: 'oldest',
      limit: PAGE,
      ...(cursor === null ? null : { cursor }),
    })
    for (const task of page.tasks) expirations.see(task)
    cursor = page.cursor
    if (cursor === null) return
  }
}

const BY_MOVE: Readonly<Record<string, Counted>> = {
  submit: 'submitted',
  claim: 'claimed',
  complete: 'completed',
  expire: 'expired',
  cancel: 'cancelled',
  reschedule: 'rescheduled',
  release: 'released',
}
const BY_END: Readonly<Record<string, Counted>> = { failed: 'failed', cancelled: 'cancelled', pending: 'retried' }
const RETRIES: ReadonlySet<string> = new Set(['fail', 'time-out', 'lose-lease', 'retry'])

const tally = (instruments: Instruments, { move, at, to, delay }: Move, task: Task): void => {
  const labels = { task_type: task.type, queue: task.queue }
  const counted =
    RETRIES.has(move) || (RUN_ENDS.has(move) && to !== 'pending' && to !== 'completed') ? BY_END[to] : BY_MOVE[move]
  if (counted !== undefined) instruments.counters[counted].inc(labels)
  if (move === 'lose-lease') instruments.leasesLost.inc(labels)
  if (move === 'submit' && task.expiresAt !== null)
    instruments.ttl.observe(labels, Math.max(0, task.expiresAt - task.createdAt) / 1_000)
  if (move === 'reschedule' && delay !== undefined) instruments.rescheduleDelay.observe(labels, delay / 1_000)
  // `startedAt` and `availableAt` belong to the run in question only while no later run has begun.
  if (move === 'claim' && at >= task.availableAt) instruments.wait.observe(labels, (at - task.availableAt) / 1_000)
  else if (RUN_ENDS.has(move) && task.startedAt !== null && at >= task.startedAt)
    instruments.duration.observe(labels, (at - task.startedAt) / 1_000)
}

const setDepth = ({ depth }: Instruments, queues: readonly QueueStats[]): void => {
  depth.reset()
  for (const stats of queues) for (const view of COUNTED_VIEWS) depth.set({ queue: stats.queue, view }, stats[view])
}

const setLimits = ({ limit, rateLimit, pausedGroups }: Instruments, queues: readonly QueueStats[]): void => {
  for (const gauge of [limit, rateLimit, pausedGroups]) gauge.reset()
  for (const { queue, limits, pausedGroups: paused } of queues) {
    const { concurrency, perGroup, rate, ratePerGroup } = limits ?? {}
    if (concurrency !== undefined) limit.set({ queue, limit: 'concurrency' }, concurrency)
    if (perGroup !== undefined) limit.set({ queue, limit: 'per_group' }, perGroup)
    if (rate !== undefined) rateLimit.set({ queue, limit: 'rate' }, startsPerSecond(rate))
    if (ratePerGroup !== undefined) rateLimit.set({ queue, limit: 'rate_per_group' }, startsPerSecond(ratePerGroup))
    if (paused.length > 0) pausedGroups.set({ queue }, paused.length)
  }
}
