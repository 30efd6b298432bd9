/** Removes ended tasks: by age in small batches, or immediately. */

import { HoldfastError } from '../../core/errors.ts'
import { RETENTION } from '../../core/storage/document-names.ts'
import { checkName } from '../../core/submission.ts'
import type { Change, Instant, TaskStatus } from '../../core/task.ts'
import { isTerminal, TERMINAL_STATUSES } from '../../core/task.ts'
import { type Duration, parseDuration } from '../../core/values/durations.ts'
import type { Cancel } from '../clock.ts'
import { editDocument } from '../documents.ts'
import { withPatience } from '../patience.ts'
import type { Session } from '../session.ts'

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
/** How often to read the store's document while there is nothing to remove. */
const ASK_EVERY = 600_000

/** Returns how many were removed. Tasks that changed meanwhile are left alone. Idempotency keys stay until they expire. */
const prune = async (
  { store }: Session,
  { status, before, queue, limit = Number.POSITIVE_INFINITY }: PruneQuery,
): Promise<number> => {
  let removed = 0
  let after: string | undefined
  while (removed < limit) {
    const query = { views: [{ status }], completedBefore: before, ...(queue === undefined ? null : { queue }) }
    const tasks = (
      await store.list(query, {
        order: 'oldest',
        limit: Math.min(BATCH, limit - removed),
        now: null,
        ...(after === undefined ? null : { after }),
      })
    ).tasks
    if (tasks.length === 0) break
    after = tasks.at(-1)!.id
    const results = await store.remove(tasks.map(({ id, revision }) => ({ id, revision, endKey: false })))
    removed += results.filter((result) => result === 'removed').length
  }
  return removed
}

/** Which ended tasks `prune` removes. */
export interface PruneOptions {
  /** Ended at least this long ago. */
  readonly olderThan: Duration
  /** Default: every terminal status but archived. */
  readonly status?: TaskStatus | readonly TaskStatus[]
  /** Only of this queue. */
  readonly queue?: string
  /** Remove no more than this. */
  readonly limit?: number
}

/** Prunes at the request of an operator. Returns how many were removed. */
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

type Kept = ReadonlyMap<TaskStatus, number>

const parsed = (options: RetentionOptions): Kept =>
  new Map(
    Object.entries(options).map(([status, duration]) => [
      checkStatus(status, `retention.${status}`),
      parseDuration(duration, `retention.${status}`),
    ]),
  )

/** The retention in the store's document, which applies to all processes; null if there is none. */
const readRetention = async (session: Session): Promise<RetentionOptions | null> => {
  const document = await withPatience(session, () => session.store.documents.get(RETENTION))
  return document === null ? null : (JSON.parse(document.value) as RetentionOptions)
}

/** Applies to every process that uses this store, from its next sweep on. null: only the options of each process apply. */
const writeRetention = async (session: Session, options: RetentionOptions | null): Promise<void> => {
  if (options !== null) parsed(options)
  await editDocument(session, RETENTION, () => (options === null ? null : JSON.stringify(options)))
}

/** Reads and sets how long the store keeps ended tasks. */
export interface RetentionHandle {
  /** What is set in the store for all processes; null if nothing is. */
  get(): Promise<RetentionOptions | null>
  /** null: only the options of each process apply. */
  set(options: RetentionOptions | null): Promise<void>
}

export const retentionHandle = (open: <T>(work: (session: Session) => Promise<T>) => Promise<T>): RetentionHandle => ({
  get: () => open(readRetention),
  set: (options) => open((session) => writeRetention(session, options)),
})

export class Retention {
  readonly #session: Session
  readonly #own: Kept
  /** The shorter of this process's own options and of the store's document. */
  #keep: Kept
  #cancel: Cancel = () => {}
  #users = 0
  readonly #first = Promise.withResolvers<void>()

  constructor(session: Session, options: RetentionOptions) {
    this.#session = session
    this.#own = parsed(options)
    this.#keep = this.#own
  }

  /** Resolves after the first sweep of this process, also if it failed. */
  get firstSweep(): Promise<void> {
    return this.#first.promise
  }

  start(): void {
    if (this.#users++ === 0) this.#schedule(0)
  }

  stop(): void {
    if (--this.#users === 0) this.#cancel()
  }

  /** True if a task that ends with this change is not kept: the worker removes it instead of moving it. */
  discards({ set: { status } }: Change): boolean {
    return status !== undefined && isTerminal(status) && this.#keep.get(status) === 0
  }

  #schedule(delay: number): void {
    this.#cancel = this.#session.clock.after(
      delay,
      () =>
        void this.#sweep().finally(() => {
          this.#first.resolve()
          if (this.#users > 0) this.#schedule(this.#keep.size === 0 ? ASK_EVERY : EVERY)
        }),
    )
  }

  async #sweep(): Promise<void> {
    try {
      const shared = parsed((await readRetention(this.#session)) ?? {})
      const keep = new Map(this.#own)
      for (const [status, age] of shared) keep.set(status, Math.min(age, keep.get(status) ?? age))
      this.#keep = keep
      const now = this.#session.time.now()
      for (const [status, age] of keep) await prune(this.#session, { status, before: now - age + 1 })
    } catch (error) {
      // The next sweep tries again.
      this.#session.logger.warn(
        `retention could not remove tasks: ${error instanceof Error ? error.message : String(error)}`,
      )
    }
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
