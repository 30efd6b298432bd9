/** From moves to numbers: of this process, or of the whole store. */
import { type Channel, channel } from 'node:diagnostics_channel'
import { Registry } from '@prometheus-io/client'
import {
  type Client,
  COUNTED_VIEWS,
  type HistoryEntry,
  type MoveEvent,
  type QueueStats,
  type Task,
  type TaskChange,
} from '../index.ts'
import { Expirations } from './expirations.ts'
import { type Counted, type Instruments, makeInstruments } from './instruments.ts'

export interface MetricsOptions {
  /**
   * `process` (default): the moves of this client; each worker tells its own. `store`: everybody's, found by following the
   * store, from the first scrape on.
   */
  readonly of?: 'process' | 'store'
  /** Of `store`: somebody who follows it already, and tells every change. Default: a follower of their own. */
  readonly follow?: (listener: (change: TaskChange) => void) => () => void
  /** Where the metrics are registered. Default: a registry of their own. */
  readonly registry?: Registry
}

export interface Metrics {
  readonly registry: Registry
  /** What a scraper gets. */
  text(): Promise<{ readonly type: string; readonly text: string }>
  close(): void
}

type Move = Pick<HistoryEntry, 'move' | 'at' | 'to' | 'delay'>

/** Pending tasks that were there before, looked at once for those that will expire. */
const SEEDED = 5_000
const PAGE = 1_000

export const createMetrics = (
  client: Client,
  { of = 'process', follow = following(client), registry = new Registry() }: MetricsOptions = {},
): Metrics => {
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
  const stopStale = onStaleWrite(({ task }) => instruments.staleWrites.inc({ task_type: task.type, queue: task.queue }))
  /** Scrapes at the same time share one count. */
  let counting: Promise<QueueStats[]> | null = null
  return {
    registry,
    text: async () => {
      started ??= start()
      await started
      counting ??= client.stats().finally(() => {
        counting = null
      })
      setDepth(instruments, await counting)
      instruments.nearExpiration.reset()
      for (const { type, queue, count: near } of expirations.near(await client.now()))
        instruments.nearExpiration.set({ task_type: type, queue }, near)
      return { type: registry.contentType, text: await registry.metrics() }
    },
    close: () => {
      stopFollowing()
      stopMoves()
      stopStale()
    },
  }
}

const following =
  (client: Client): NonNullable<MetricsOptions['follow']> =>
  (listener) => {
    const stop = new AbortController()
    const follow = async (): Promise<void> => {
      for await (const change of client.changes({ signal: stop.signal })) listener(change)
    }
    // It ends when the client is closed; what goes wrong with the store, others tell.
    follow().catch(() => {})
    return () => stop.abort()
  }

const moveOf = ({ move, at, task }: MoveEvent): Move => {
  const entry = task.history.at(-1)
  return { ...(entry?.move === move ? entry : null), move, at, to: task.status }
}

/** Refused writes are no moves: whoever meets one says so on this channel. */
const onStaleWrite = (
  listener: (message: { readonly task: { readonly type: string; readonly queue: string } }) => void,
): (() => void) => {
  const stale: Channel = channel('holdfast:stale-write')
  const heard = (message: unknown): void => listener(message as never)
  stale.subscribe(heard)
  return () => stale.unsubscribe(heard)
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

/** Moves that end a run. */
const ENDS: ReadonlySet<string> = new Set(['complete', 'fail', 'time-out', 'lose-lease', 'reschedule', 'release'])
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
    RETRIES.has(move) || (ENDS.has(move) && to !== 'pending' && to !== 'completed') ? BY_END[to] : BY_MOVE[move]
  if (counted !== undefined) instruments.counters[counted].inc(labels)
  if (move === 'lose-lease') instruments.leasesLost.inc(labels)
  if (move === 'submit' && task.expiresAt !== null)
    instruments.ttl.observe(labels, Math.max(0, task.expiresAt - task.createdAt) / 1_000)
  if (move === 'reschedule' && delay !== undefined) instruments.rescheduleDelay.observe(labels, delay / 1_000)
  // `startedAt` and `availableAt` are those of the run that is meant only while no later one has begun.
  if (move === 'claim' && at >= task.availableAt) instruments.wait.observe(labels, (at - task.availableAt) / 1_000)
  else if (ENDS.has(move) && task.startedAt !== null && at >= task.startedAt)
    instruments.duration.observe(labels, (at - task.startedAt) / 1_000)
}

const setDepth = ({ depth }: Instruments, queues: readonly QueueStats[]): void => {
  depth.reset()
  for (const stats of queues) for (const view of COUNTED_VIEWS) depth.set({ queue: stats.queue, view }, stats[view])
}
