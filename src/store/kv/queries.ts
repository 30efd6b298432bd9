/**
 * Lists and counts. Tasks that have not ended are found by their hints, ended tasks in the index of ended tasks. Without that
 * index a query reads all tasks.
 */
import { PAGE_WEIGHT, weightOf } from '../../core/storage/page-weight.ts'
import type { Instant, TaskRecord } from '../../core/task.ts'
import { isTerminal, withoutHistory } from '../../core/task.ts'
import { matches } from '../matching.ts'
import type { Page, Query } from '../store.ts'
import type { RetryingKeyValue } from './access/retrying-key-value.ts'
import type { EndedIndex } from './ended/ended-index.ts'
import { IndexedQueries, type PendingCount } from './ended/indexed-queries.ts'
import type { Hints } from './hints/hints.ts'
import { beyond, firstInOrder, MOST_IDS, pagesOfHints, READ_PAGE, readTasks } from './records/bulk-reads.ts'
import { idOfTaskKey, TASK_PARTS, TASKS } from './records/names.ts'
import type { Tasks } from './records/tasks.ts'

const LIST_PAGE = 1_000
const PARTS_AT_ONCE = 4

export class Queries {
  readonly #kv: RetryingKeyValue
  readonly #tasks: Tasks
  readonly #hints: Hints
  readonly #ended: EndedIndex | null
  readonly #indexed: IndexedQueries | null
  #pending: PendingCount[] = []

  constructor(kv: RetryingKeyValue, tasks: Tasks, hints: Hints, ended: EndedIndex | null) {
    this.#kv = kv
    this.#tasks = tasks
    this.#hints = hints
    this.#ended = ended
    this.#indexed = ended === null ? null : new IndexedQueries({ kv, tasks, hints, index: ended })
  }

  /** null: there is no index, or it is not complete yet. */
  async #index(): Promise<IndexedQueries | null> {
    return this.#ended !== null && (await this.#ended.state.isComplete()) ? this.#indexed : null
  }

  async list(query: Query, page: Page & { readonly now: Instant }): Promise<TaskRecord[]> {
    const { order, limit, after, now } = page
    const forward = order === 'oldest'
    const found: TaskRecord[] = []
    let weight = 0
    if (limit <= 0 || query.views?.length === 0) return found
    if (!excludesEnded(query)) {
      const tasks = await (await this.#index())?.list(query, page)
      if (tasks != null) return tasks
    }
    for (let from = after; ; ) {
      const ids = await firstInOrder(this.#pagesOfIds(query), forward, beyond(from, forward))
      for (let i = 0; i < ids.length; ) {
        const some = ids.slice(i, i + Math.min(READ_PAGE, Math.max(limit - found.length, 20)))
        i += some.length
        for (const task of await readTasks(this.#tasks, some)) {
          if (task != null && matches(task, query, now)) {
            found.push(withoutHistory(task))
            weight += weightOf(task)
          }
          if (found.length === limit || weight >= PAGE_WEIGHT) return found
        }
      }
      if (ids.length < MOST_IDS) return found
      from = ids.at(-1)!
    }
  }

  /** Counts of one tick share one pass over the tasks: a page of statistics asks for nine counts a queue. */
  count(query: Query, cap: number, now: Instant): Promise<number> {
    if (cap <= 0 || query.views?.length === 0) return Promise.resolve(0)
    return new Promise((resolve, reject) => {
      const one: PendingCount = { query, cap, now, resolve, reject }
      if (this.#pending.push(one) === 1)
        setImmediate(() => {
          const pending = this.#pending
          this.#pending = []
          void this.#countAll(pending)
        })
    })
  }

  async #countAll(pending: readonly PendingCount[]): Promise<void> {
    const byHints = pending.filter(({ query }) => excludesEnded(query))
    const others = pending.filter(({ query }) => !excludesEnded(query))
    try {
      const index = others.length === 0 ? null : await this.#index()
      if (index !== null) {
        await index.count(pending)
        return
      }
    } catch (error) {
      for (const { reject } of pending) reject(error)
      return
    }
    if (byHints.length > 0) void this.#count(byHints)
    if (others.length > 0) void this.#count(others)
  }

  async #count(pending: readonly PendingCount[]): Promise<void> {
    const counts = pending.map(() => 0)
    // A query for "is there any" should not read hundreds of tasks.
    const most = Math.max(10, ...pending.map(({ cap }) => cap))
    const isFull = (): boolean => pending.every(({ cap }, i) => counts[i]! >= cap)
    try {
      const queues = new Set(pending.map(({ query }) => query.queue))
      const scope: Query = {
        ...(excludesEnded(pending[0]!.query) ? { views: [{ status: 'pending' }] } : null),
        ...(queues.size === 1 && pending[0]!.query.queue !== undefined ? { queue: pending[0]!.query.queue } : null),
      }
      const seen = new Set<string>()
      for await (const ids of this.#pagesOfIds(scope)) {
        const fresh = excludesEnded(scope) ? ids.filter((id) => seen.size !== seen.add(id).size) : ids
        for (let i = 0; i < fresh.length && !isFull(); ) {
          const some = fresh.slice(i, i + Math.min(READ_PAGE, most))
          i += some.length
          for (const task of await readTasks(this.#tasks, some)) {
            if (task == null) continue
            for (const [n, { query, now }] of pending.entries()) if (matches(task, query, now)) counts[n]!++
          }
        }
        if (isFull()) break
      }
      for (const [i, { cap, resolve }] of pending.entries()) resolve(Math.min(cap, counts[i]!))
    } catch (error) {
      for (const { reject } of pending) reject(error)
    }
  }

  /** Ids of tasks that may match, unordered. An id that is found by hints may come twice. */
  async *#pagesOfIds(query: Query): AsyncGenerator<string[]> {
    if (excludesEnded(query)) {
      for await (const hints of pagesOfHints(this.#hints, query)) yield hints.map(({ id }) => id)
      return
    }
    const written = await this.#writtenSince(query.updatedAfter)
    if (written !== null) {
      for await (const keys of written) if (keys.length > 0) yield keys.map(idOfTaskKey)
      return
    }
    const first = await this.#kv.list(TASKS, { limit: LIST_PAGE })
    yield first.map(idOfTaskKey)
    if (first.length < LIST_PAGE) return
    // There are more: list the parts concurrently, from where the first page ended.
    const last = first.at(-1)!
    const parts = TASK_PARTS.filter((part) => part >= last.slice(0, part.length))
    for (let i = 0; i < parts.length; i += PARTS_AT_ONCE) {
      const lists = parts.slice(i, i + PARTS_AT_ONCE).map((part) => this.#kv.pages(part, last))
      for (let open = lists; open.length > 0; ) {
        const pages = await Promise.all(open.map((list) => list.next()))
        for (const page of pages) if (!page.done) yield page.value.map(idOfTaskKey)
        open = open.filter((_, n) => !pages[n]!.done)
      }
    }
  }

  /** A move has a time no later than that of its write, unless the caller gave a time in the future. */
  async #writtenSince(since: Instant | undefined): Promise<AsyncIterable<readonly string[]> | null> {
    if (since === undefined || since > (await this.#kv.now()).at) return null
    return this.#kv.listWritten(TASKS, since)
  }
}

/** Only tasks that have not ended can match. Each of them has a hint. */
const excludesEnded = ({ views, workerId }: Query): boolean =>
  workerId !== undefined || (views?.every(({ status }) => !isTerminal(status)) ?? false)
