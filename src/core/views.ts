/** The states by which tasks are queried: stored statuses, and views computed from the record and `now`. */
import { HoldfastError } from './errors.ts'
import { type Instant, STATUSES, type TaskRecord, type TaskStatus } from './task.ts'

/** All views. */
export const VIEWS = [...STATUSES, 'scheduled', 'ready', 'retrying', 'parked', 'dead'] as const
/** What a task is now: its status, or for a pending task what it waits for. */
export type View = TaskStatus | 'scheduled' | 'ready' | 'retrying' | 'parked' | 'dead'

/** The counts of a queue: every task is in exactly one of these. */
export const COUNTED_VIEWS = [
  'ready',
  'scheduled',
  'retrying',
  'parked',
  'running',
  'completed',
  'failed',
  'cancelled',
  'expired',
  'archived',
] as const
/** A view that `stats` counts. */
export type CountedView = (typeof COUNTED_VIEWS)[number]

/** Aliases from the source designs, accepted wherever a view is. */
export const VIEW_ALIASES: Readonly<Record<string, View>> = {
  in_flight: 'running',
  inflight: 'running',
  claimed: 'running',
  succeeded: 'completed',
  success: 'completed',
  retry: 'retrying',
  dlq: 'dead',
}

/** A view in terms that a store can evaluate. */
export interface ViewFilter {
  readonly status: TaskStatus
  /** Only for pending tasks: due now, or due later. */
  readonly available?: 'now' | 'later'
  readonly retried?: true
  /** Only for tasks due later: in a durable wait of their handler, or not. */
  readonly parked?: boolean
}

const FILTERS: Readonly<Partial<Record<View, ViewFilter>>> = {
  scheduled: { status: 'pending', available: 'later', parked: false },
  ready: { status: 'pending', available: 'now' },
  retrying: { status: 'pending', available: 'later', retried: true, parked: false },
  parked: { status: 'pending', available: 'later', parked: true },
  dead: { status: 'failed' },
}

export const viewFilter = (view: View): ViewFilter => FILTERS[view] ?? { status: view as TaskStatus }

export const matchesView = (task: TaskRecord, filter: ViewFilter, now: Instant): boolean =>
  task.status === filter.status &&
  (filter.available === undefined || (filter.available === 'now') === task.availableAt <= now) &&
  (filter.retried === undefined || task.retryCount > 0) &&
  (filter.parked === undefined || filter.parked === (task.parked !== null))

/** The most specific state of a task at `now`. A retrying task is also scheduled; a dead one is also failed. */
export const viewOf = (task: TaskRecord, now: Instant): View => {
  if (task.status === 'failed') return 'dead'
  if (task.status !== 'pending') return task.status
  if (task.availableAt <= now) return 'ready'
  if (task.parked !== null) return 'parked'
  return task.retryCount > 0 ? 'retrying' : 'scheduled'
}

/** The view of a name or of one of its aliases. */
export const parseView = (name: string): View => {
  const lower = name.toLowerCase()
  const view = Object.hasOwn(VIEW_ALIASES, lower) ? VIEW_ALIASES[lower] : VIEWS.find((known) => known === lower)
  if (view !== undefined) return view
  throw new HoldfastError('INVALID_OPTION', `status: '${name}' is not one of ${VIEWS.join(', ')}`, { field: 'status' })
}
