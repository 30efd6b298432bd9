/** Questions about many tasks: lists, counts, statistics. */
import { HoldfastError } from '../core/errors.ts'
import { Task } from '../core/snapshot.ts'
import { checkId, checkInteger, checkName, type InstantInput, parseInstant } from '../core/submission.ts'
import { parseView, viewFilter } from '../core/views.ts'
import { glanceOf } from '../store/plain-glance.ts'
import type { Query, QueueCounts } from '../store/store.ts'
import type { Queues } from './queues.ts'
import type { Session } from './session.ts'

export interface TaskQuery {
  /** A status or a view, or several: 'failed', 'ready', 'scheduled', 'retrying', 'dead', … Archived tasks are left out unless asked for. */
  readonly status?: string | readonly string[]
  readonly queue?: string
  readonly type?: string
  readonly tag?: { readonly name: string; readonly value: string }
  readonly workerId?: string
  readonly createdAfter?: InstantInput
  readonly createdBefore?: InstantInput
  readonly completedBefore?: InstantInput
}

export interface ListOptions extends TaskQuery {
  /** Default 'newest'. */
  readonly order?: 'newest' | 'oldest'
  /** Default 100, at most 1,000. */
  readonly limit?: number
  /** The `cursor` of the page before. */
  readonly cursor?: string
  /**
   * Newest first: pass no more than about so many tasks. A page may then be short, or empty, and have a cursor all the same.
   * Default: as many as it takes, which is all of them when few match.
   */
  readonly most?: number
}

export interface TaskPage {
  readonly tasks: readonly Task[]
  /** Hand it back for the next page; null: this was the last. */
  readonly cursor: string | null
}

/** Exact up to the cap of the count; `capped` says that there are more, or, of a count that was to pass no more than some, that there may be. */
export interface Count {
  readonly count: number
  readonly capped: boolean
}

/** How many tasks a queue has. Scheduled ones are counted without those that are retrying. */
export interface QueueStats extends QueueCounts {
  readonly queue: string
  readonly paused: boolean
}

const NOT_ARCHIVED = ['pending', 'running', 'completed', 'failed', 'cancelled', 'expired'] as const
const DEFAULT_CAP = 100_000

export const toQuery = (query: TaskQuery): Query => {
  const names =
    query.status === undefined ? NOT_ARCHIVED : typeof query.status === 'string' ? [query.status] : query.status
  if (names.length === 0)
    throw new HoldfastError('INVALID_OPTION', 'status is an empty list: leave it out, or name at least one', {
      field: 'status',
    })
  return {
    views: names.map((name) => viewFilter(parseView(name))),
    ...(query.queue === undefined ? null : { queue: checkName(query.queue, 'queue') }),
    ...(query.type === undefined ? null : { type: checkName(query.type, 'type') }),
    ...(query.tag === undefined ? null : { tag: query.tag }),
    ...(query.workerId === undefined ? null : { workerId: query.workerId }),
    ...(query.createdAfter === undefined ? null : { createdAfter: parseInstant(query.createdAfter, 'createdAfter') }),
    ...(query.createdBefore === undefined
      ? null
      : { createdBefore: parseInstant(query.createdBefore, 'createdBefore') }),
    ...(query.completedBefore === undefined
      ? null
      : { completedBefore: parseInstant(query.completedBefore, 'completedBefore') }),
  }
}

export const listTasks = async ({ store }: Session, options: ListOptions): Promise<TaskPage> => {
  const { order = 'newest', cursor, most } = options
  if (order !== 'newest' && order !== 'oldest')
    throw new HoldfastError('INVALID_OPTION', "order must be 'newest' or 'oldest'", { field: 'order' })
  const limit = checkInteger(options.limit ?? 100, 'limit', 1, 1_000)
  // One more than asked for tells whether there is a next page.
  const page = { limit: limit + 1, now: null, ...(cursor === undefined ? null : { after: checkCursor(cursor) }) }
  const query = toQuery(options)
  const { tasks: records, stoppedAt } =
    most === undefined || order === 'oldest'
      ? { tasks: await store.list(query, { ...page, order }), stoppedAt: null }
      : await glanceOf(store).list(query, page, checkMost(most))
  const tasks = records.slice(0, limit).map((record) => new Task(record))
  return { tasks, cursor: records.length > limit ? tasks.at(-1)!.id : stoppedAt }
}

const checkMost = (most: number): number => checkInteger(most, 'most', 1_000, 1_000_000_000)

const checkCursor = (cursor: string): string => {
  try {
    return checkId(cursor)
  } catch {
    throw new HoldfastError('INVALID_OPTION', 'cursor is not one that list gave', { field: 'cursor' })
  }
}

export interface CountOptions {
  /** Default 100,000. */
  readonly cap?: number
  /** Pass no more than about so many tasks. Default: as many as it takes. */
  readonly most?: number
}

export const countTasks = async (
  { store }: Session,
  query: TaskQuery,
  { cap = DEFAULT_CAP, most }: CountOptions = {},
): Promise<Count> => {
  checkInteger(cap, 'cap', 1, 1_000_000_000)
  if (most !== undefined) return glanceOf(store).count(toQuery(query), cap, checkMost(most), null)
  const count = await store.count(toQuery(query), cap + 1, null)
  return { count: Math.min(count, cap), capped: count > cap }
}

/** Of every queue that was ever used. */
export const queueStats = async (
  { store }: Session,
  queues: Queues,
  cap: number = DEFAULT_CAP,
): Promise<QueueStats[]> => {
  checkInteger(cap, 'cap', 1, 1_000_000)
  const [names, paused] = await Promise.all([queues.names(), queues.refresh()])
  const counts = await glanceOf(store).queues(names, cap, null)
  return names.map((queue, i) => ({ queue, paused: paused.has(queue), ...counts[i]! }))
}
