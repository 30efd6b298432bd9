/** Questions about many tasks. What has not ended is found by its hints; everything else only by walking over all tasks. */
import { isContactLost } from '../../core/errors.ts'
import type { Instant, TaskRecord } from '../../core/task.ts'
import { isTerminal } from '../../core/task.ts'
import { matches } from '../matching.ts'
import type { Page, Query } from '../store.ts'
import { hintsIn, idOfTaskKey, queuePrefix, READY, TASK_PARTS, TASKS } from './names.ts'
import type { SteadyKeyValue } from './steady.ts'
import { isLiving, type Tasks } from './tasks.ts'

const LIST_PAGE = 1_000
/** Ids in hand at once: the memory that a question may take. */
const MOST_IDS = 10_000
/** Tasks read at once. */
const READ_PAGE = 200

type Beyond = (id: string) => boolean

interface Asked {
  readonly query: Query
  readonly cap: number
  readonly now: Instant
  answer(count: number): void
  refuse(error: unknown): void
}

export class Queries {
  readonly #kv: SteadyKeyValue
  readonly #tasks: Tasks
  #asked: Asked[] = []

  constructor(kv: SteadyKeyValue, tasks: Tasks) {
    this.#kv = kv
    this.#tasks = tasks
  }

  async list(query: Query, { order, limit, after, now }: Page & { readonly now: Instant }): Promise<TaskRecord[]> {
    const forward = order === 'oldest'
    const found: TaskRecord[] = []
    if (limit <= 0 || query.views?.length === 0) return found
    for (let from = after; ; ) {
      const cursor = from
      const ids = await this.#idsInOrder(
        query,
        forward,
        (id) => cursor === undefined || (forward ? id > cursor : id < cursor),
      )
      for (let i = 0; i < ids.length; i += READ_PAGE) {
        const some = ids.slice(i, i + Math.min(READ_PAGE, Math.max(limit - found.length, 20)))
        for (const task of await this.#read(some)) {
          if (task !== null && matches(task, query, now)) found.push({ ...task, history: [] })
          if (found.length === limit) return found
        }
        i += some.length - READ_PAGE
      }
      if (ids.length < MOST_IDS) return found
      from = ids.at(-1)!
    }
  }

  /** Questions of one tick share a walk: nine counts of each queue would otherwise read every task nine times. */
  count(query: Query, cap: number, now: Instant): Promise<number> {
    if (cap <= 0 || query.views?.length === 0) return Promise.resolve(0)
    return new Promise((answer, refuse) => {
      const one: Asked = { query, cap, now, answer, refuse }
      if (this.#asked.push(one) === 1)
        setImmediate(() => {
          const asked = this.#asked
          this.#asked = []
          const byHints = asked.filter((each) => isOfHints(each.query))
          const byWalk = asked.filter((each) => !isOfHints(each.query))
          if (byHints.length > 0) void this.#count(byHints)
          if (byWalk.length > 0) void this.#count(byWalk)
        })
    })
  }

  async #count(asked: readonly Asked[]): Promise<void> {
    const counts = asked.map(() => 0)
    // Whoever wants to know only whether there is one need not read hundreds.
    const most = Math.max(10, ...asked.map(({ cap }) => cap))
    const isFull = (): boolean => asked.every(({ cap }, i) => counts[i]! >= cap)
    try {
      const queues = new Set(asked.map(({ query }) => query.queue))
      const scope: Query = {
        ...(isOfHints(asked[0]!.query) ? { views: [{ status: 'pending' }] } : null),
        ...(queues.size === 1 && asked[0]!.query.queue !== undefined ? { queue: asked[0]!.query.queue } : null),
      }
      const met = new Set<string>()
      for await (const ids of this.#pagesOfIds(scope)) {
        const fresh = isOfHints(scope) ? ids.filter((id) => met.size !== met.add(id).size) : ids
        for (let i = 0; i < fresh.length && !isFull(); ) {
          const some = fresh.slice(i, i + Math.min(READ_PAGE, most))
          i += some.length
          for (const task of await this.#read(some)) {
            if (task === null) continue
            for (const [n, { query, now }] of asked.entries()) if (matches(task, query, now)) counts[n]!++
          }
        }
        if (isFull()) break
      }
      for (const [i, { cap, answer }] of asked.entries()) answer(Math.min(cap, counts[i]!))
    } catch (error) {
      for (const { refuse } of asked) refuse(error)
    }
  }

  /** Those that come first, as many as may be in hand. */
  async #idsInOrder(query: Query, forward: boolean, beyond: Beyond): Promise<string[]> {
    const first = new Set<string>()
    let last: string | null = null
    const sorted = (): string[] => {
      const ids = [...first].sort()
      return (forward ? ids : ids.reverse()).slice(0, MOST_IDS)
    }
    for await (const ids of this.#pagesOfIds(query)) {
      for (const id of ids) if (beyond(id) && (last === null || (forward ? id < last : id > last))) first.add(id)
      if (first.size < 2 * MOST_IDS) continue
      const kept = sorted()
      first.clear()
      for (const id of kept) first.add(id)
      last = kept.at(-1)!
    }
    return sorted()
  }

  /** Of tasks that may match, in no order; by hints an id may come twice. */
  async *#pagesOfIds(query: Query): AsyncGenerator<string[]> {
    if (isOfHints(query)) {
      const prefix = query.queue === undefined ? READY : queuePrefix(query.queue)
      for await (const keys of this.#pages(prefix)) {
        const hints = keys.flatMap(hintsIn)
        yield hints.filter(({ type }) => query.type === undefined || type === query.type).map(({ id }) => id)
      }
      return
    }
    const written = await this.#writtenSince(query.updatedAfter)
    if (written !== null) {
      for await (const keys of written) if (keys.length > 0) yield keys.map(idOfTaskKey)
      return
    }
    const small = await this.#kv.list(TASKS, { limit: LIST_PAGE })
    yield small.map(idOfTaskKey)
    if (small.length < LIST_PAGE) return
    // Too many for one list: the parts beside each other, from where the first one ended.
    const last = small.at(-1)!
    const parts = TASK_PARTS.filter((part) => part >= last.slice(0, part.length))
    for (let i = 0; i < parts.length; i += 4) {
      const lanes = parts.slice(i, i + 4).map((part) => this.#pages(part, last))
      for (let open = lanes; open.length > 0; ) {
        const pages = await Promise.all(open.map((lane) => lane.next()))
        for (const page of pages) if (!page.done) yield page.value.map(idOfTaskKey)
        open = open.filter((_, n) => !pages[n]!.done)
      }
    }
  }

  /** A move stamps a task with a time no later than that of its write, unless somebody gave it one from the future. */
  async #writtenSince(since: Instant | undefined): Promise<AsyncIterable<readonly string[]> | null> {
    if (since === undefined || since > (await this.#kv.now()).at) return null
    return this.#kv.listWritten(TASKS, since)
  }

  async *#pages(prefix: string, from?: string): AsyncGenerator<readonly string[]> {
    for (let after = from; ; ) {
      const keys = await this.#kv.list(prefix, after === undefined ? { limit: LIST_PAGE } : { limit: LIST_PAGE, after })
      if (keys.length > 0) yield keys
      if (keys.length < LIST_PAGE) return
      after = keys.at(-1)!
    }
  }

  /** One that cannot be read must not hide the others: whoever asks for it by its id is told. */
  #read(ids: readonly string[]): Promise<(TaskRecord | null)[]> {
    return Promise.all(
      ids.map(async (id) => {
        try {
          const kept = await this.#tasks.read(id)
          return isLiving(kept) ? kept.task : null
        } catch (error) {
          if (isContactLost(error)) throw error
          return null
        }
      }),
    )
  }
}

/** Only about tasks that have not ended: every one of those has a hint. */
const isOfHints = ({ views, workerId }: Query): boolean =>
  workerId !== undefined || (views?.every(({ status }) => !isTerminal(status)) ?? false)
