/**
 * Changes of the store by any process: polled, each change reported once. A look asks for what
 * was stamped since a little before the last one, because a change comes to light some time after its stamp; histories and
 * revisions tell what is new in it.
 */

import { isHoldfastError, mayPass } from '../../core/errors.ts'
import { isLastPage } from '../../core/page-weight.ts'
import { checkInteger, checkName, type InstantInput, parseInstant } from '../../core/submission.ts'
import type { HistoryEntry, Instant, TaskRecord } from '../../core/task.ts'
import { Task } from '../../core/task-view.ts'
import type { Query } from '../../store/store.ts'
import { pause } from '../clock.ts'
import type { Session } from '../session.ts'

export interface FollowOptions {
  readonly queue?: string
  readonly type?: string
  readonly tag?: { readonly name: string; readonly value: string }
  /** Also what has happened since then. Default: only what happens from now on. */
  readonly since?: InstantInput
  /**
   * For who only looks on: while more tasks than this change between two looks, some changes are told for all, each with
   * the `weight` that it has, and the store is left in peace. Default: every change is told.
   */
  readonly most?: number
  /** Ends it. */
  readonly signal?: AbortSignal
}

/** One move of one task. */
export interface TaskChange {
  readonly entry: HistoryEntry
  /** As it was found, which may be some moves later. */
  readonly task: Task
  /** Where changes are sampled: about how many changes this one stands for. */
  readonly weight?: number
}

const EVERY = 250
/** What most changes need from their stamp until they can be seen. */
const OVERLAP = 2_000
/** What none needs: a call may wait for 15 s. Looked back so far now and then, and behind transactions that are open. */
const LONG_OVERLAP = 20_000
const LONG_EVERY = 5_000
/** A look that takes its time is not to be all that the store does. */
const REST = 10
const PAGE = 500
/** Tasks that are remembered after a look: beyond it, what is older than the forgotten is taken for told. */
const MOST_TOLD = 100_000
const LONGEST_WAIT = 5_000
/** While not everything is told. */
const SLICES_EVERY = 500
/** A look may be dear, above all on PostgreSQL, whose index of completed tasks is coarse. */
const REST_FOR_EYES = 20
const LONGEST_REST = 10_000
const FIRST_SLICE = 100
/** So long ago a slice ends: what is stamped comes to light a little later. */
const LAG = 500
const SHORTEST_SLICE = 20
/** How many of the tasks found in a slice are read with their histories. */
const MOST_READ = 100

/** From now on, not only from the first turn of the loop. */
export const follow = (
  session: Session,
  closing: AbortSignal,
  options: FollowOptions,
): AsyncGenerator<TaskChange, void, undefined> => {
  const signal = options.signal === undefined ? closing : AbortSignal.any([options.signal, closing])
  return tell(session, new Follower(session, options), signal)
}

async function* tell(
  session: Session,
  follower: Follower,
  signal: AbortSignal,
): AsyncGenerator<TaskChange, void, undefined> {
  let failures = 0
  let rest = EVERY
  while (!signal.aborted) {
    try {
      for await (const changes of follower.look()) {
        for (const change of changes) {
          if (signal.aborted) return
          yield change
        }
      }
      failures = 0
      rest = follower.rest
    } catch (error) {
      if (signal.aborted) return
      // Who may not read will not be let in by waiting.
      if (!mayPass(error) || isHoldfastError(error, 'STORE_READ_ONLY')) throw error
      if (failures++ === 0) session.logger.warn(`the store does not answer; looking again: ${(error as Error).message}`)
    }
    await pause(session.clock, Math.max(rest, Math.min(EVERY * 2 ** failures, LONGEST_WAIT)), signal)
  }
}

class Follower {
  readonly #session: Session
  readonly #query: Query
  readonly #told = new Map<string, { readonly revision: number; readonly at: Instant }>()
  /** Of a task that is not remembered, everything from then on is new. */
  #horizon: Instant
  /** When the last look began. */
  #lookedAt: Instant | null = null
  /** By the last long look everything before it had come to light. */
  #settled: Instant = 0
  #longDueAt = Number.NEGATIVE_INFINITY
  readonly #most: number
  /** While too much changes: how far back a look goes, in milliseconds. null: everything is told. */
  #slice: number | null = null
  #took = 0

  constructor(session: Session, { queue, type, tag, since, most }: FollowOptions) {
    this.#session = session
    this.#most = most === undefined ? Number.POSITIVE_INFINITY : checkInteger(most, 'most', 10, 1_000_000)
    this.#query = {
      ...(queue === undefined ? null : { queue: checkName(queue, 'queue') }),
      ...(type === undefined ? null : { type: checkName(type, 'type') }),
      ...(tag === undefined ? null : { tag }),
    }
    // Others may take the time for a little less than it is: better a change told that was made a moment before.
    const now = session.time.now() - 2 * Math.ceil(session.time.uncertainty)
    this.#horizon = since === undefined ? now : parseInstant(since, 'since')
  }

  get #isForEyes(): boolean {
    return this.#most < Number.POSITIVE_INFINITY
  }

  /** How long to leave the store in peace. */
  get rest(): number {
    if (!this.#isForEyes) return EVERY
    return Math.min(Math.max(this.#slice === null ? EVERY : SLICES_EVERY, REST_FOR_EYES * this.#took), LONGEST_REST)
  }

  /** Page by page, by time within each. */
  async *look(): AsyncGenerator<readonly TaskChange[], void, undefined> {
    const { time, clock } = this.#session
    if (time.isOld) await time.anchor()
    const began = clock.mono()
    if (this.#slice === null) yield* this.#lookAtAll(began)
    else yield await this.#lookAtSlice()
    this.#took = clock.mono() - began
  }

  /** What changed in the last moment stands for what changed since the last look. */
  async #lookAtSlice(): Promise<readonly TaskChange[]> {
    const { store, time } = this.#session
    let [now, slice] = [time.now(), this.#slice!]
    let found = await this.#listSlice(now, slice)
    if (found.length === this.#most && slice > SHORTEST_SLICE) {
      // Cut off, it does not tell how many there were.
      ;[now, slice] = [time.now(), SHORTEST_SLICE]
      found = await this.#listSlice(now, slice)
    }
    const read = found.slice(0, MOST_READ)
    const records = await store.get(read.map(({ id }) => id))
    const elapsed = now - this.#lookedAt!
    const weight = (elapsed / slice) * (found.length / Math.max(1, read.length))
    this.#lookedAt = now
    if (slice >= elapsed && found.length < this.#most / 4) {
      // Calm again: from here on everything is told.
      this.#slice = null
      this.#told.clear()
      this.#horizon = now - LAG
      this.#settled = this.#horizon
      this.#longDueAt = this.#session.clock.mono() + LONG_OVERLAP
    } else if (found.length < this.#most / 16) this.#slice = Math.max(2 * slice, elapsed + LAG)
    else this.#slice = found.length < this.#most / 4 ? 2 * slice : slice
    return records
      .flatMap((record) => {
        if (record === null) return []
        const task = new Task(record)
        // A claim that was followed by the end so soon is met only with that.
        return record.history.filter(({ at }) => at > task.updatedAt - LAG).map((entry) => ({ entry, task, weight }))
      })
      .sort(byTime)
  }

  async #listSlice(now: Instant, slice: number): Promise<readonly TaskRecord[]> {
    const page = { order: 'newest', limit: this.#most, now: null } as const
    const until = now - LAG
    const query = { ...this.#query, updatedAfter: until - slice - 1, updatedBefore: until }
    return (await this.#session.store.list(query, page)).tasks
  }

  async *#lookAtAll(began: number): AsyncGenerator<readonly TaskChange[], void, undefined> {
    const { store, time, clock } = this.#session
    const now = time.now()
    const isFirst = this.#lookedAt === null
    // Who only looks on may come in the middle of a flood: what came to light late from before is not worth a long look.
    const isLong = began >= this.#longDueAt && !(isFirst && this.#isForEyes)
    // Before the tasks are read: what is settled now is among them.
    const settled = isLong ? ((await store.visibleUntil?.()) ?? now) : isFirst ? now : this.#settled
    const back = isLong ? LONG_OVERLAP : OVERLAP
    const after =
      this.#lookedAt === null
        ? // Also what has come to light before: what comes later is new.
          Math.min(this.#horizon - 1, now - back)
        : (isLong ? Math.min(this.#lookedAt, this.#settled) : this.#lookedAt) - back
    let told = 0
    for await (const records of this.#pages(after)) {
      told += records.length
      if (told > this.#most) {
        this.#slice = FIRST_SLICE
        this.#lookedAt = now
        return
      }
      const changes = records.flatMap((record) => this.#news(record, now))
      if (changes.length > 0) yield changes.sort(byTime)
    }
    if (isFirst) this.#horizon = now - back + 1
    this.#forget()
    this.#lookedAt = now
    this.#settled = settled
    if (isLong || isFirst) this.#longDueAt = clock.mono() + Math.max(LONG_EVERY, REST * (clock.mono() - began))
  }

  /** What has changed since `after` and is not told yet, with histories. */
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
    // At the first look what lies far back is behind the horizon when it is over: no need to remember.
    if (this.#lookedAt !== null || updatedAt > now - LONG_OVERLAP) this.#told.set(id, { revision, at: updatedAt })
    const task = new Task(record)
    return history
      .filter(({ n, at }) => (told === undefined ? at >= this.#horizon : n > told.revision))
      .map((entry) => ({ entry, task }))
  }

  #forget(): void {
    if (this.#told.size <= MOST_TOLD) return
    const oldest = [...this.#told].sort(([, a], [, b]) => a.at - b.at).slice(0, this.#told.size - MOST_TOLD / 2)
    for (const [id, { at }] of oldest) {
      this.#told.delete(id)
      this.#horizon = Math.max(this.#horizon, at + 1)
    }
  }
}

const byTime = (a: TaskChange, b: TaskChange): number =>
  a.entry.at - b.entry.at || (a.task.id < b.task.id ? -1 : a.task.id > b.task.id ? 1 : a.entry.n - b.entry.n)
