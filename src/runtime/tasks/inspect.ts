/** Lists, counts and statistics of tasks. */
import { HoldfastError } from '../../core/errors.ts'
import type { LimitOptions } from '../../core/flow/limits.ts'
import type { Pause } from '../../core/flow/pause.ts'
import { Task } from '../../core/observe/task-view.ts'
import { isLastPage } from '../../core/storage/page-weight.ts'
import { checkGroup, checkId, checkInteger, checkName, type InstantInput, parseInstant } from '../../core/submission.ts'
import type { Instant } from '../../core/task.ts'
import { checkOptionNames } from '../../core/values/option-names.ts'
import { parseView, viewFilter } from '../../core/views.ts'
import { countQueues } from '../../store/queue-counts.ts'
import type { Query, QueueCounts } from '../../store/store.ts'
import type { Queues } from '../queues/queues.ts'
import type { Session } from '../session.ts'

/** A filter of tasks; all its fields must match. */
export interface TaskQuery {
  /** A status or a view, or several: 'failed', 'ready', 'scheduled', 'retrying', 'dead', … Archived tasks are left out unless asked for. */
  readonly status?: string | readonly string[]
  /** In this queue. */
  readonly queue?: string
  /** Of this type. */
  readonly type?: string
  /** Of this group. */
  readonly group?: string
  /** With this tag, exactly. */
  readonly tag?: { readonly name: string; readonly value: string }
  /** Running, and held by this worker. */
  readonly workerId?: string
  /** Submitted later than this instant. */
  readonly createdAfter?: InstantInput
  /** Submitted earlier. */
  readonly createdBefore?: InstantInput
  /** Ended earlier, in whatever status. */
  readonly completedBefore?: InstantInput
}

/** Limits and order of `list`. */
export interface ListOptions extends TaskQuery {
  /** Default 'newest'. */
  readonly order?: 'newest' | 'oldest'
  /** Default 100, at most 1,000. A page of large payloads ends sooner: at about 8 MiB. */
  readonly limit?: number
  /** The `cursor` of the page before. */
  readonly cursor?: string
  /**
   * Scan at most about this many tasks. A page may then be short, or empty, and still have a cursor.
   * Default: scan until the page is full, which is all tasks when few match.
   */
  readonly maxScanned?: number
}

/** One page of tasks, and the cursor of the next. */
export interface TaskPage {
  /** Without their histories and steps: `get` reads those. */
  readonly tasks: readonly Task[]
  /** Hand it back for the next page; null: this was the last. */
  readonly cursor: string | null
}

/** Exact up to the cap, and larger than the cap where the store knows the number at no cost. */
export interface Count {
  /** How many were counted. */
  readonly count: number
  /** There are more tasks, or, with `maxScanned`, there may be. */
  readonly capped: boolean
}

/** Instants are in ISO 8601. */
type ShownPause = Pick<Pause, 'at' | 'by' | 'reason' | 'until'>

/** How many tasks a queue has. Scheduled ones are counted without those that are retrying. */
export interface QueueStats extends QueueCounts {
  /** Its name. */
  readonly queue: string
  /** The whole queue is paused. */
  readonly paused: boolean
  /** When the pause ends by itself; null: it must be resumed, or the queue is not paused. */
  readonly pausedUntil: Instant | null
  /** Who paused it, when and why; null: it is not paused. */
  readonly pause: ShownPause | null
  /** null: it has none. */
  readonly limits: LimitOptions | null
  /** The groups that are paused, by name. */
  readonly pausedGroups: readonly string[]
  /** By group. */
  readonly groupPauses: Readonly<Record<string, ShownPause>>
}

const NOT_ARCHIVED = ['pending', 'running', 'completed', 'failed', 'cancelled', 'expired'] as const
const DEFAULT_CAP = 100_000

const QUERY: readonly (keyof TaskQuery)[] = [
  'group',
  'status',
  'queue',
  'type',
  'tag',
  'workerId',
  'createdAfter',
  'createdBefore',
  'completedBefore',
]
const QUERY_NAMES: ReadonlySet<string> = new Set(QUERY)
const LIST_NAMES: ReadonlySet<string> = new Set<keyof ListOptions>([...QUERY, 'order', 'limit', 'cursor', 'maxScanned'])

/** A misspelt name would otherwise select every task, also those to cancel or to remove. */
export const toQuery = (query: TaskQuery, of = 'a query', known = QUERY_NAMES): Query => {
  checkOptionNames(query, known, of)
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
    ...(query.group === undefined ? null : { group: checkGroup(query.group) }),
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

/** For calls that cancel, replay or remove tasks: a variable that was never set must not select all tasks. `{}` does. */
export const mustSayWhich = (query: object): void => {
  for (const [field, value] of Object.entries(query))
    if (value === undefined)
      throw new HoldfastError(
        'INVALID_OPTION',
        `${field} is undefined: give a value, or leave it out to mean all tasks`,
        {
          field,
        },
      )
}

export const listTasks = async ({ store }: Session, options: ListOptions): Promise<TaskPage> => {
  const { order = 'newest', cursor, maxScanned } = options
  if (order !== 'newest' && order !== 'oldest')
    throw new HoldfastError('INVALID_OPTION', "order must be 'newest' or 'oldest'", { field: 'order' })
  const limit = checkInteger(options.limit ?? 100, 'limit', 1, 1_000)
  // One more than asked for tells whether there is a next page.
  const { tasks: records, stoppedAt } = await store.list(toQuery(options, 'list', LIST_NAMES), {
    order,
    limit: limit + 1,
    now: null,
    ...(cursor === undefined ? null : { after: checkCursor(cursor) }),
    ...(maxScanned === undefined ? null : { maxScanned: checkMaxScanned(maxScanned) }),
  })
  const tasks = records.slice(0, limit).map((record) => new Task(record))
  return { tasks, cursor: isLastPage(records, limit + 1) ? stoppedAt : tasks.at(-1)!.id }
}

const checkMaxScanned = (maxScanned: number): number => checkInteger(maxScanned, 'maxScanned', 1_000, 1_000_000_000)

const checkCursor = (cursor: string): string => {
  try {
    return checkId(cursor)
  } catch {
    throw new HoldfastError('INVALID_OPTION', 'cursor was not returned by list', { field: 'cursor' })
  }
}

/** Limits of `count`. */
export interface CountOptions {
  /** Default 100,000. */
  readonly cap?: number
  /** Scan at most about this many tasks. Default: all that may match. */
  readonly maxScanned?: number
}

export const countTasks = async (
  { store }: Session,
  query: TaskQuery,
  { cap = DEFAULT_CAP, maxScanned }: CountOptions = {},
): Promise<Count> => {
  checkInteger(cap, 'cap', 1, 1_000_000_000)
  return store.count(toQuery(query), {
    cap,
    now: null,
    ...(maxScanned === undefined ? null : { maxScanned: checkMaxScanned(maxScanned) }),
  })
}

const shownPause = (pause: Pause | null): ShownPause | null => {
  if (pause === null) return null
  const { at, by, reason, until } = pause
  return { at, by, ...(reason === undefined ? null : { reason }), ...(until === undefined ? null : { until }) }
}

/** Covers every queue that was ever used, is paused or is limited. */
export const queueStats = async (
  { store }: Session,
  queues: Queues,
  cap: number = DEFAULT_CAP,
): Promise<QueueStats[]> => {
  checkInteger(cap, 'cap', 1, 1_000_000)
  const [used, paused] = await Promise.all([queues.names(), queues.refresh()])
  // A queue can be paused or limited before its first use.
  const names = [...new Set([...used, ...paused, ...queues.limits.queues])]
  const counts = await countQueues(store, names, cap, null)
  return names.map((queue, i) => ({
    queue,
    paused: paused.has(queue),
    pausedUntil: queues.pausedUntil(queue),
    pause: shownPause(queues.pauseOf(queue)),
    limits: queues.limits.of(queue),
    pausedGroups: [...queues.limits.pausedGroups(queue).keys()],
    groupPauses: Object.fromEntries(
      [...queues.limits.pausedGroups(queue)].map(([group, pause]) => [group, shownPause(pause)!]),
    ),
    ...counts[i]!,
  }))
}
