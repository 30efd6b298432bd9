/** Selects dead letters by ids, query or group, and returns them a few at a time. */

import type { HoldfastError } from '../../core/errors.ts'
import { fingerprintOf } from '../../core/observe/fingerprint.ts'
import { isLastPage } from '../../core/storage/page-weight.ts'
import { checkedId, checkInteger } from '../../core/submission.ts'
import type { Instant, TaskRecord } from '../../core/task.ts'
import type { Page, TaskList } from '../../store/store.ts'
import { withPatience } from '../patience.ts'
import { notFound, type Session } from '../session.ts'
import { type TaskQuery, toQuery } from '../tasks/inspect.ts'

/** Like the query of `list`, without a status. `group` is a fingerprint from `groups`; the group of the task is `taskGroup`. */
export interface DeadQuery extends Omit<TaskQuery, 'status' | 'workerId' | 'group'> {
  /** Of this error. */
  readonly group?: string
  /** Of this group of tasks: a tenant, an account. */
  readonly taskGroup?: string
}

/** `{}` means all of them. */
export type Which = string | readonly string[] | DeadQuery

/** Records from a query have no history. */
export type Letter =
  | { readonly id: string; readonly record: TaskRecord }
  | { readonly id: string; readonly error: HoldfastError }

const PAGE = 1_000
const DEFAULT_CAP = 100_000

export class Selection {
  readonly #session: Session
  readonly #more: () => Promise<readonly Letter[] | null>
  readonly #cap: number
  #buffer: Letter[] = []
  #scanned = 0
  #isCapped = false

  constructor(session: Session, which: Which, cap: number = DEFAULT_CAP, order: Page['order'] = 'oldest') {
    this.#session = session
    this.#cap = checkInteger(cap, 'cap', 1, 1_000_000_000)
    this.#more = isQuery(which) ? this.#byQuery(which, order) : this.#byIds(typeof which === 'string' ? [which] : which)
  }

  get scanned(): number {
    return this.#scanned
  }

  get isCapped(): boolean {
    return this.#isCapped
  }

  /** Returns up to `most`; an empty list at the end. */
  async next(most: number): Promise<readonly Letter[]> {
    while (this.#buffer.length < most) {
      const more = await this.#more()
      if (more === null) break
      this.#buffer.push(...more)
    }
    return this.#buffer.splice(0, most)
  }

  #byIds(given: readonly string[]): () => Promise<readonly Letter[] | null> {
    const ids = [...new Set(given)]
    return async () => {
      const some = ids.splice(0, PAGE)
      if (some.length === 0) return null
      const checked = some.map((id) => checkedId(id))
      const good = checked.flatMap((one) => (typeof one === 'string' ? [one] : []))
      const records = await withPatience(this.#session, () => this.#session.store.get(good))
      this.#scanned += good.length
      return checked.map((one) => {
        if (typeof one !== 'string') return one
        const record = records[good.indexOf(one)]
        return record ? { id: one, record } : { id: one, error: notFound(one) }
      })
    }
  }

  /** Only tasks that are dead now, so that one that fails again during the walk is not returned twice. */
  #byQuery(
    { group, taskGroup, completedBefore, ...query }: DeadQuery,
    order: Page['order'],
  ): () => Promise<readonly Letter[] | null> {
    const { time } = this.#session
    // The upper bound of the store's time, so that every task that has failed by now is included.
    const deadBefore = time.now() + 2 * Math.ceil(time.uncertainty) + 1
    const wanted = toQuery({
      ...query,
      status: 'failed',
      ...(taskGroup === undefined ? null : { group: taskGroup }),
      ...(completedBefore === undefined ? null : { completedBefore }),
    })
    const before: Instant = Math.min(wanted.completedBefore ?? deadBefore, deadBefore)
    const page = (after?: string): Promise<readonly TaskRecord[]> => {
      const wish = {
        order,
        limit: Math.min(PAGE, this.#cap - this.#scanned + 1),
        now: null,
        ...(after === undefined ? null : { after }),
      } as const
      const list = (): Promise<TaskList> => this.#session.store.list({ ...wanted, completedBefore: before }, wish)
      const found = withPatience(this.#session, list).then(({ tasks }) => tasks)
      // Reads ahead while the previous page is processed. An error is thrown when the page is used.
      found.catch(() => {})
      return found
    }
    let next: Promise<readonly TaskRecord[]> | null = page()
    return async () => {
      if (next === null) return null
      const found: readonly TaskRecord[] = await next
      const records = found.slice(0, this.#cap - this.#scanned)
      this.#scanned += records.length
      this.#isCapped = found.length > records.length
      next = this.#isCapped || isLastPage(found, PAGE) ? null : page(found.at(-1)!.id)
      return records
        .filter(({ lastError }) => group === undefined || fingerprintOf(lastError).fingerprint === group)
        .map((record) => ({ id: record.id, record }))
    }
  }
}

const isQuery = (which: Which): which is DeadQuery => typeof which === 'object' && !Array.isArray(which)
