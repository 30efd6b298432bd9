/** Removing what has ended: by age, in small batches, or at once. */
import { type Duration, parseDuration } from '../core/durations.ts'
import { HoldfastError } from '../core/errors.ts'
import { checkName } from '../core/submission.ts'
import type { Change, Instant, TaskStatus } from '../core/task.ts'
import { isTerminal, TERMINAL_STATUSES } from '../core/task.ts'
import type { Cancel } from './clock.ts'
import type { Session } from './session.ts'

/** How long to keep tasks of each status after they ended. Off by default; 0 removes at once. */
export type RetentionOptions = { readonly [Status in Exclude<TaskStatus, 'pending' | 'running'>]?: Duration }

interface PruneQuery {
  readonly status: TaskStatus
  readonly before: Instant
  readonly queue?: string
  readonly limit?: number
}

const BATCH = 500
const EVERY = 60_000

/** How many were removed. What changed in between is left alone. Keys live on to the end of their own time. */
const prune = async (
  { store }: Session,
  { status, before, queue, limit = Number.POSITIVE_INFINITY }: PruneQuery,
): Promise<number> => {
  let removed = 0
  let after: string | undefined
  while (removed < limit) {
    const query = { views: [{ status }], completedBefore: before, ...(queue === undefined ? null : { queue }) }
    const tasks = await store.list(query, {
      order: 'oldest',
      limit: Math.min(BATCH, limit - removed),
      now: null,
      ...(after === undefined ? null : { after }),
    })
    if (tasks.length === 0) break
    after = tasks.at(-1)!.id
    const results = await store.remove(tasks.map(({ id, revision }) => ({ id, revision, endKey: false })))
    removed += results.filter((result) => result === 'removed').length
  }
  return removed
}

export interface PruneOptions {
  /** Ended at least this long ago. */
  readonly olderThan: Duration
  /** Default: every terminal status but archived. */
  readonly status?: TaskStatus | readonly TaskStatus[]
  readonly queue?: string
  /** Remove no more than this. */
  readonly limit?: number
}

/** As an operator asks for it. How many were removed. */
export const pruneEnded = async (
  session: Session,
  { olderThan, status, queue, limit }: PruneOptions,
): Promise<number> => {
  const before = session.time.now() - parseDuration(olderThan, 'olderThan') + 1
  const named =
    status === undefined
      ? TERMINAL_STATUSES.filter((one) => one !== 'archived')
      : typeof status === 'string'
        ? [status]
        : status
  const statuses = named.map((one) => checkStatus(one, 'status'))
  let removed = 0
  for (const one of statuses) {
    removed += await prune(session, {
      status: one,
      before,
      ...(queue === undefined ? null : { queue: checkName(queue, 'queue') }),
      ...(limit === undefined ? null : { limit: limit - removed }),
    })
  }
  return removed
}

export class Retention {
  readonly #session: Session
  readonly #keep: ReadonlyMap<TaskStatus, number>
  #cancel: Cancel = () => {}
  #users = 0

  constructor(session: Session, options: RetentionOptions) {
    this.#session = session
    this.#keep = new Map(
      Object.entries(options).map(([status, duration]) => [
        checkStatus(status, `retention.${status}`),
        parseDuration(duration, `retention.${status}`),
      ]),
    )
  }

  start(): void {
    if (this.#users++ === 0) this.#schedule(0)
  }

  stop(): void {
    if (--this.#users === 0) this.#cancel()
  }

  /** Tasks that end so are not kept at all: the worker removes them instead of moving them. */
  discards({ set: { status } }: Change): boolean {
    return status !== undefined && isTerminal(status) && this.#keep.get(status) === 0
  }

  #schedule(delay: number): void {
    this.#cancel = this.#session.clock.after(
      delay,
      () => void this.#sweep().finally(() => this.#users > 0 && this.#schedule(EVERY)),
    )
  }

  async #sweep(): Promise<void> {
    try {
      const now = this.#session.time.now()
      for (const [status, age] of this.#keep) await prune(this.#session, { status, before: now - age + 1 })
    } catch (error) {
      this.#complain(error)
    }
  }

  /** The next sweep tries again. */
  #complain(error: unknown): void {
    this.#session.logger.warn(
      `retention could not remove tasks: ${error instanceof Error ? error.message : String(error)}`,
    )
  }
}

const checkStatus = (status: string, field: string): TaskStatus => {
  const known = TERMINAL_STATUSES.find((one) => one === status)
  if (known !== undefined) return known
  throw new HoldfastError(
    'INVALID_OPTION',
    `${field}: only ended tasks can be removed, not '${status}': name one of ${TERMINAL_STATUSES.join(', ')}`,
    { field },
  )
}
