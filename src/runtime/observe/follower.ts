/**
 * Follows every change of the store, each reported once. A poll asks for tasks stamped since a little before the last poll, because
 * a change becomes visible some time after its stamp. Histories and revisions tell which entries are new.
 */

import { Task } from '../../core/observe/task-view.ts'
import { isLastPage } from '../../core/storage/page-weight.ts'
import type { HistoryEntry, Instant, TaskRecord } from '../../core/task.ts'
import type { Query } from '../../store/store.ts'
import type { Session } from '../session.ts'

/** One move of one task. */
export interface TaskChange {
  readonly entry: HistoryEntry
  /** The task as it was read, which may be some moves later. */
  readonly task: Task
  /** Present if changes are sampled: about how many changes this one represents. */
  readonly weight?: number
}

export interface PollOptions {
  /** Give up after this many changed tasks. */
  readonly most: number
  /** Whether the first poll also searches for changes that became visible late. */
  readonly isFirstLong: boolean
}

/** The interval of polls. */
export const POLL_EVERY = 250
/** How long most changes take from their stamp until they are visible. */
const OVERLAP = 2_000
/** Longer than any change takes: a call may wait for 15 s. Long polls go back this far, and behind transactions that are open. */
const LONG_OVERLAP = 20_000
const LONG_EVERY = 5_000
/** Long polls pause for this many times as long as they took, to limit the load on the store. */
const REST = 10
const PAGE = 500
/** How many tasks are remembered after a poll, where transactions stay open. Of the forgotten ones, everything older counts as reported. */
const MOST_TOLD = 100_000

export class Follower {
  readonly #session: Session
  readonly #query: Query
  readonly #told = new Map<string, { readonly revision: number; readonly at: Instant }>()
  /** Entries of a task that is not remembered are new from this instant on. */
  #horizon: Instant
  /** When the last poll began. */
  #polledAt: Instant | null = null
  /** As of the last long poll, every change before this instant was visible. */
  #settled: Instant = 0
  #longDueAt = Number.NEGATIVE_INFINITY

  constructor(session: Session, query: Query, since: Instant) {
    this.#session = session
    this.#query = query
    this.#horizon = since
  }

  /** How many tasks it must know to report each change once. */
  get remembered(): number {
    return this.#told.size
  }

  /** Continues as if everything before `since` had been reported by a poll that began at `polledAt`. */
  resume(since: Instant, polledAt: Instant): void {
    this.#told.clear()
    this.#horizon = since
    this.#settled = since
    this.#polledAt = polledAt
    this.#longDueAt = this.#session.clock.mono() + LONG_OVERLAP
  }

  /** Page by page, by time within each. Returns when it began if there were more than `most`; null if it has seen everything. */
  async *poll({ most, isFirstLong }: PollOptions): AsyncGenerator<readonly TaskChange[], Instant | null, undefined> {
    const { store, time, clock } = this.#session
    const began = clock.mono()
    const now = time.now()
    const isFirst = this.#polledAt === null
    const isLong = began >= this.#longDueAt && (!isFirst || isFirstLong)
    // Read before the tasks, so that everything settled by then is among them.
    const settled = isLong ? ((await store.visibleUntil?.()) ?? now) : isFirst ? now : this.#settled
    const back = isLong ? LONG_OVERLAP : OVERLAP
    const after =
      this.#polledAt === null
        ? // Also remembers what is visible already, so that only later changes are new.
          Math.min(this.#horizon - 1, now - back)
        : (isLong ? Math.min(this.#polledAt, this.#settled) : this.#polledAt) - back
    let seen = 0
    for await (const records of this.#pages(after)) {
      seen += records.length
      if (seen > most) return now
      const changes = records.flatMap((record) => this.#news(record, now))
      if (changes.length > 0) yield changes.sort(byTime)
    }
    if (isFirst) this.#horizon = now - back + 1
    this.#polledAt = now
    this.#settled = settled
    if (isLong) this.#forgetBefore(Math.min(now, settled) - LONG_OVERLAP)
    this.#forgetMost()
    if (isLong || isFirst) this.#longDueAt = clock.mono() + Math.max(LONG_EVERY, REST * (clock.mono() - began))
    return null
  }

  /** Tasks that have changed since `after` and are not reported yet, with histories. */
  async *#pages(after: Instant): AsyncGenerator<readonly TaskRecord[], void, undefined> {
    const { store } = this.#session
    let cursor: string | undefined
    for (;;) {
      const page = {
        order: 'oldest',
        limit: PAGE,
        now: null,
        ...(cursor === undefined ? null : { after: cursor }),
      } as const
      const found = (await store.list({ ...this.#query, updatedAfter: after }, page)).tasks
      const fresh = found.filter(({ id, revision }) => revision > (this.#told.get(id)?.revision ?? 0))
      if (fresh.length > 0) {
        const records = await store.get(fresh.map(({ id }) => id))
        yield records.filter((record) => record !== null)
      }
      if (isLastPage(found, PAGE)) return
      cursor = found.at(-1)!.id
    }
  }

  #news(record: TaskRecord, now: Instant): TaskChange[] {
    const { id, revision, updatedAt, history } = record
    const told = this.#told.get(id)
    // At the first poll, old changes need not be remembered: they are behind the horizon when it is over.
    if (this.#polledAt !== null || updatedAt > now - LONG_OVERLAP) this.#told.set(id, { revision, at: updatedAt })
    const task = new Task(record)
    return history
      .filter(({ n, at }) => (told === undefined ? at >= this.#horizon : n > told.revision))
      .map((entry) => ({ entry, task }))
  }

  /** No poll asks for older changes again. */
  #forgetBefore(instant: Instant): void {
    for (const [id, { at }] of this.#told) if (at < instant) this.#told.delete(id)
    this.#horizon = Math.max(this.#horizon, instant)
  }

  #forgetMost(): void {
    if (this.#told.size <= MOST_TOLD) return
    const oldest = [...this.#told].sort(([, a], [, b]) => a.at - b.at).slice(0, this.#told.size - MOST_TOLD / 2)
    for (const [id, { at }] of oldest) {
      this.#told.delete(id)
      this.#horizon = Math.max(this.#horizon, at + 1)
    }
  }
}

export const byTime = (a: TaskChange, b: TaskChange): number =>
  a.entry.at - b.entry.at || (a.task.id < b.task.id ? -1 : a.task.id > b.task.id ? 1 : a.entry.n - b.entry.n)
