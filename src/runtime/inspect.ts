/** Questions about many tasks: lists, counts, statistics. */
import { HoldfastError } from '../core/errors.ts'
import { Task } from '../core/snapshot.ts'
import { checkId, checkInteger, checkName, type InstantInput, parseInstant } from '../core/submission.ts'
import { parseView, viewFilter } from '../core/views.ts'
import type { Query } from '../store/store.ts'
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
}

export interface TaskPage {
  readonly tasks: readonly Task[]
  /** Hand it back for the next page; null: this was the last. */
  readonly cursor: string | null
}

/** Exact up to the cap of the count; `capped` says that there are more. */
export interface Count {
  readonly count: number
  readonly capped: boolean
}

export interface QueueStats {
  readonly queue: string
  readonly paused: boolean
  readonly ready: number
  readonly scheduled: number
  readonly retrying: number
  readonly running: number
  readonly completed: number
  readonly failed: number
  readonly cancelled: number
  readonly expired: number
  readonly archived: number
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
  const { order = 'newest', cursor } = options
  if (order !== 'newest' && order !== 'oldest')
    throw new HoldfastError('INVALID_OPTION', "order must be 'newest' or 'oldest'", { field: 'order' })
  const limit = checkInteger(options.limit ?? 100, 'limit', 1, 1_000)
  const after = cursor === undefined ? null : { after: checkCursor(cursor) }
  // One more than asked for tells whether there is a next page.
  const records = await store.list(toQuery(options), { order, limit: limit + 1, now: null, ...after })
  const tasks = records.slice(0, limit).map((record) => new Task(record))
  return { tasks, cursor: records.length > limit ? tasks.at(-1)!.id : null }
}

const checkCursor = (cursor: string): string => {
  try {
    return checkId(cursor)
  } catch {
    throw new HoldfastError('INVALID_OPTION', 'cursor is not one that list gave', { field: 'cursor' })
  }
}

export const countTasks = async ({ store }: Session, query: TaskQuery, cap: number = DEFAULT_CAP): Promise<Count> => {
  const count = await store.count(toQuery(query), checkInteger(cap, 'cap', 1, 1_000_000_000) + 1, null)
  return { count: Math.min(count, cap), capped: count > cap }
}

/** Of every queue that was ever used. Counts of waiting tasks are cut at the cap. */
export const queueStats = async (
  session: Session,
  queues: Queues,
  cap: number = DEFAULT_CAP,
): Promise<QueueStats[]> => {
  const [names, paused] = await Promise.all([queues.names(), queues.refresh()])
  return Promise.all(
    names.map(async (queue) => {
      const countOf = async (status: string): Promise<number> =>
        (await countTasks(session, { queue, status }, cap)).count
      const [ready, later, retrying, running, completed, failed, cancelled, expired, archived] = await Promise.all(
        ['ready', 'scheduled', 'retrying', 'running', 'completed', 'failed', 'cancelled', 'expired', 'archived'].map(
          countOf,
        ),
      )
      return {
        queue,
        paused: paused.has(queue),
        ready: ready!,
        scheduled: later! - retrying!,
        retrying: retrying!,
        running: running!,
        completed: completed!,
        failed: failed!,
        cancelled: cancelled!,
        expired: expired!,
        archived: archived!,
      }
    }),
  )
}
