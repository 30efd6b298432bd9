/** Answers queries from the index and the hints. A task that is in neither does not exist. */
import { isHeavy } from '../../../core/storage/page-weight.ts'
import type { Instant, TaskRecord } from '../../../core/task.ts'
import { isTerminal, withoutHistory } from '../../../core/task.ts'
import { matches } from '../../matching.ts'
import type { Page, Query } from '../../store.ts'
import type { RetryingKeyValue } from '../access/retrying-key-value.ts'
import type { Hints } from '../hints/hints.ts'
import { beyond, firstInOrder, MOST_IDS, pagesOfHints, READ_PAGE, readTasks } from '../records/bulk-reads.ts'
import type { Tasks } from '../records/tasks.ts'
import type { EndedIndex } from './ended-index.ts'
import { endedStatusesOf } from './ended-reader.ts'
import { MERGE_AGE } from './merge-segments.ts'
import { type IndexedTask, indexedTask } from './segment-names.ts'

/** A query for recent changes reads every task with a hint. With more hints than this, listing all tasks is cheaper. */
const MOST_HINTED = 200

/**
 * An ended task that still has a hint may not be in the index yet. If at most this many tasks have hints, they are read as
 * well, so that a task that another process has just ended is found at once.
 */
const FEW_HINTED = 50
/** A task that ended longer ago is in the index, unless its process died. */
const ENTERED_BY = 60_000

export interface PendingCount {
  readonly query: Query
  readonly cap: number
  readonly now: Instant
  resolve(count: number): void
  reject(error: unknown): void
}

interface Candidate {
  readonly id: string
  /** null: found by its hint. */
  readonly entry: IndexedTask | null
}

interface Parts {
  readonly kv: RetryingKeyValue
  readonly tasks: Tasks
  readonly hints: Hints
  readonly index: EndedIndex
}

export class IndexedQueries {
  readonly #kv: RetryingKeyValue
  readonly #tasks: Tasks
  readonly #hints: Hints
  readonly #index: EndedIndex

  constructor({ kv, tasks, hints, index }: Parts) {
    this.#kv = kv
    this.#hints = hints
    this.#tasks = tasks
    this.#index = index
  }

  /** null: the query is faster without the index. */
  async list(query: Query, page: Page & { readonly now: Instant }): Promise<TaskRecord[] | null> {
    const { updatedAfter } = query
    if (updatedAfter !== undefined) return this.#changed({ ...query, updatedAfter }, page)
    await this.#index.writer.flush()
    const forward = page.order === 'oldest'
    const found: TaskRecord[] = []
    for (let after = page.after; ; ) {
      // Hints first: a task whose hint is already gone is in the index.
      const hinted = await this.#hinted(query, page, after)
      const bound = hinted.length === MOST_IDS ? hinted.at(-1)! : null
      for await (const candidates of this.#candidates(query, forward, after, hinted)) {
        await this.#readUpTo(
          page.limit,
          bound === null ? candidates : upTo(candidates, bound, forward),
          found,
          query,
          page,
        )
        if (found.length === page.limit || isHeavy(found)) return found
        if (bound !== null && candidates.some(({ id }) => id === bound)) break
      }
      if (bound === null) return found
      after = bound
    }
  }

  /** Ids of tasks with hints that may match, in order. */
  async #hinted(query: Query, { order, now }: Page & { readonly now: Instant }, after?: string): Promise<string[]> {
    const forward = order === 'oldest'
    if (!wantsLive(query)) {
      const few = mayBeOnItsWay(query, now) ? await this.#fewHinted(query) : []
      const sorted = few.filter(beyond(after, forward)).sort()
      return forward ? sorted : sorted.reverse()
    }
    const pages = async function* (hints: Hints): AsyncGenerator<readonly string[]> {
      for await (const page of pagesOfHints(hints, query)) yield page.map(({ id }) => id)
    }
    return firstInOrder(pages(this.#hints), forward, beyond(after, forward))
  }

  /** All ids that have hints. Empty if there are too many. */
  async #fewHinted(query: Pick<Query, 'queue' | 'type'>): Promise<string[]> {
    const ids = new Set<string>()
    for await (const hints of pagesOfHints(this.#hints, query)) {
      for (const { id } of hints) ids.add(id)
      if (ids.size > FEW_HINTED) return []
    }
    return [...ids]
  }

  /** Merges both sources in order, each id once. */
  async *#candidates(
    query: Query,
    forward: boolean,
    after: string | undefined,
    hinted: readonly string[],
  ): AsyncGenerator<readonly Candidate[]> {
    const isBefore = (a: string, b: string): boolean => (forward ? a < b : a > b)
    let next = 0
    for await (const entries of this.#index.reader.inOrder(query, forward, after)) {
      const merged: Candidate[] = []
      for (const entry of entries) {
        for (; next < hinted.length && isBefore(hinted[next]!, entry.id); next++)
          merged.push({ id: hinted[next]!, entry: null })
        if (hinted[next] === entry.id) next++
        if (merged.at(-1)?.id !== entry.id) merged.push({ id: entry.id, entry })
      }
      yield merged
    }
    if (next < hinted.length) yield hinted.slice(next).map((id) => ({ id, entry: null }))
  }

  async #readUpTo(
    limit: number,
    candidates: readonly Candidate[],
    found: TaskRecord[],
    query: Query,
    { now }: { readonly now: Instant },
  ): Promise<void> {
    for (let i = 0; i < candidates.length && found.length < limit && !isHeavy(found); ) {
      const some = candidates.slice(i, i + Math.min(READ_PAGE, Math.max(limit - found.length, 20)))
      i += some.length
      const tasks = await readTasks(
        this.#tasks,
        some.map(({ id }) => id),
      )
      this.#notice(some, tasks)
      const fresh = tasks.filter((task) => task != null && matches(task, query, now)) as TaskRecord[]
      for (const task of fresh.slice(0, limit - found.length)) if (!isHeavy(found)) found.push(withoutHistory(task))
    }
  }

  /** Reports entries that no longer match their task. */
  #notice(candidates: readonly Candidate[], tasks: readonly (TaskRecord | null | undefined)[]): void {
    const stale = candidates.flatMap(({ entry }, i) =>
      entry !== null && tasks[i] !== undefined && tasks[i]?.revision !== entry.revision ? [entry] : [],
    )
    if (stale.length > 0) this.#index.writer.noticeStale(stale)
  }

  /** null: too many tasks have not ended. */
  async #changed(
    query: Query & { readonly updatedAfter: Instant },
    { order, limit, after, now }: Page & { readonly now: Instant },
  ): Promise<TaskRecord[] | null> {
    const ids = new Set<string>()
    for await (const hints of pagesOfHints(this.#hints, query)) {
      for (const { id } of hints) ids.add(id)
      if (ids.size > MOST_HINTED) return null
    }
    const isRecent = query.updatedAfter > (await this.#kv.now()).at - MERGE_AGE / 2
    for (const id of await this.#index.reader.changedSince(query, isRecent)) ids.add(id)
    const forward = order === 'oldest'
    const sorted = [...ids].filter(beyond(after, forward)).sort()
    const candidates = (forward ? sorted : sorted.reverse()).map((id): Candidate => ({ id, entry: null }))
    const found: TaskRecord[] = []
    await this.#readUpTo(limit, candidates, found, query, { now })
    return found
  }

  /** Answers all counts from one list of hints, if any count needs it, and one list of segments. */
  async count(pending: readonly PendingCount[]): Promise<void> {
    await this.#index.writer.flush()
    const counts = pending.map(() => 0)
    // Hints first: a task whose hint is already gone is in the index.
    const unindexed = await this.#countLive(pending, counts)
    await this.#countEnded(pending, counts, unindexed)
    for (const [i, { cap, resolve }] of pending.entries()) resolve(Math.min(cap, counts[i]!))
  }

  /** Returns ended tasks that still have a hint. They may not be in the index yet. */
  async #countLive(pending: readonly PendingCount[], counts: number[]): Promise<readonly TaskRecord[]> {
    const live = [...pending.entries()].filter(([, { query }]) => wantsLive(query))
    const unindexed: TaskRecord[] = []
    if (live.length === 0) return this.#fewUnfiled(pending)
    const scope = scopeOf(live.map(([, { query }]) => query))
    // A query for "is there any" should not read hundreds of tasks.
    const most = Math.max(10, ...live.map(([, { cap }]) => cap))
    const isFull = (): boolean => live.every(([n, { cap }]) => counts[n]! >= cap)
    const seen = new Set<string>()
    for await (const hints of pagesOfHints(this.#hints, scope)) {
      const fresh = hints.map(({ id }) => id).filter((id) => seen.size !== seen.add(id).size)
      for (let i = 0; i < fresh.length && !isFull(); ) {
        const some = fresh.slice(i, i + Math.min(READ_PAGE, most))
        i += some.length
        for (const task of await readTasks(this.#tasks, some)) {
          if (task == null) continue
          if (isTerminal(task.status)) unindexed.push(task)
          else for (const [n, { query, now }] of live) if (matches(task, query, now)) counts[n]!++
        }
      }
      if (isFull()) break
    }
    return unindexed
  }

  async #fewUnfiled(pending: readonly PendingCount[]): Promise<readonly TaskRecord[]> {
    if (!pending.some(({ query, now }) => mayBeOnItsWay(query, now))) return []
    const ids = await this.#fewHinted(scopeOf(pending.map(({ query }) => query)))
    return (await readTasks(this.#tasks, ids)).filter((task) => task != null && isTerminal(task.status)) as TaskRecord[]
  }

  async #countEnded(
    pending: readonly PendingCount[],
    counts: number[],
    unindexed: readonly TaskRecord[],
  ): Promise<void> {
    const ended = [...pending.entries()].filter(
      ([n, { query, cap }]) => counts[n]! < cap && endedStatusesOf(query).length > 0,
    )
    if (ended.length === 0) return
    const { counts: indexedCounts, missing } = await this.#index.reader.countAll(
      ended.map(([, { query }]) => query),
      unindexed.map(indexedTask),
    )
    for (const [i, [n, { query, cap, now }]] of ended.entries()) {
      counts[n]! += unindexed.filter((task, at) => missing[at] && matches(task, query, now)).length
      counts[n]! += query.tag === undefined ? indexedCounts[i]! : await this.#countTagged(query, cap - counts[n]!, now)
    }
  }

  /** Tags are not in the index, so candidates are read. */
  async #countTagged(query: Query, cap: number, now: Instant): Promise<number> {
    const found: TaskRecord[] = []
    for await (const entries of this.#index.reader.inOrder(query, true, undefined)) {
      const candidates = entries.map((entry): Candidate => ({ id: entry.id, entry }))
      await this.#readUpTo(cap, candidates, found, { ...query, views: endedViews(query) }, { now })
      if (found.length >= cap) break
    }
    return found.length
  }
}

const wantsLive = ({ views, workerId }: Query): boolean =>
  workerId !== undefined || (views?.some(({ status }) => !isTerminal(status)) ?? true)

const mayBeOnItsWay = ({ completedBefore }: Query, now: Instant): boolean =>
  completedBefore === undefined || completedBefore > now - ENTERED_BY

/** The queue, if all queries name the same one. */
const scopeOf = (queries: readonly Query[]): Pick<Query, 'queue'> => {
  const queue = queries[0]?.queue
  return queue !== undefined && queries.every((query) => query.queue === queue) ? { queue } : {}
}

const endedViews = (query: Query): NonNullable<Query['views']> => endedStatusesOf(query).map((status) => ({ status }))

const upTo = (candidates: readonly Candidate[], bound: string, forward: boolean): readonly Candidate[] =>
  candidates.filter(({ id }) => (forward ? id <= bound : id >= bound))
