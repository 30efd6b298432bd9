/** Lists the hints of grouped tasks, a page at a time, and goes on from group to group, however many hints each has. */
import type { RetryingKeyValue } from '../access/retrying-key-value.ts'
import type { Timers } from '../access/timers.ts'
import { behindGroup, groupOfHint, groupsPrefix } from '../records/hint-names.ts'
import type { HintSorter } from './hint-sorter.ts'

const PAGE = 1_000
/** A claim that takes turns lists at most this many pages. */
const MOST_PAGES = 10
/** If this many show all groups, the next claims need no list. */
const FEW_PAGES = 3
/** That a queue has no grouped tasks is remembered for this long, unless this process hears of one. */
const NONE_LIFE = 10_000

interface Walk {
  readonly queue: string
  /** Where to begin. */
  readonly from: string
  readonly sorter: HintSorter
  /** The sorter has what the claim needs. */
  isEnough(): boolean
  /** The first key that is worth listing behind this one. */
  skip(key: string): string
}

export class GroupPages {
  readonly #kv: RetryingKeyValue
  readonly #timers: Timers
  /** Where the next page of a queue begins. */
  readonly #cursors = new Map<string, string>()
  /** Monotonic, by queue. */
  readonly #noneAt = new Map<string, number>()

  constructor(kv: RetryingKeyValue, timers: Timers) {
    this.#kv = kv
    this.#timers = timers
  }

  /** There is a grouped task in this queue. */
  sawGroup(queue: string): void {
    this.#noneAt.delete(queue)
  }

  #hasNone(queue: string): boolean {
    return this.#timers.mono() - (this.#noneAt.get(queue) ?? Number.NEGATIVE_INFINITY) < NONE_LIFE
  }

  /** One page, behind that of the last call. False: there is more. */
  async addNext(queue: string, sorter: HintSorter): Promise<boolean> {
    if (this.#hasNone(queue)) return true
    const start = groupsPrefix(queue)
    const from = this.#cursors.get(queue) ?? start
    const keys = await this.#kv.list(start, { limit: PAGE, after: from })
    sorter.add(keys)
    const isLast = keys.length < PAGE
    if (isLast) this.#cursors.delete(queue)
    else this.#cursors.set(queue, behindPage(queue, keys.at(-1)!, sorter))
    if (isLast && from === start && keys.length === 0) this.#noneAt.set(queue, this.#timers.mono())
    return isLast && from === start
  }

  /** Pages from one group on, around to where it began. If it stops before, the last group that it has looked at. */
  async addFrom({ queue, from, sorter, isEnough, skip }: Walk): Promise<string | null> {
    if (this.#hasNone(queue)) return null
    const start = groupsPrefix(queue)
    let hasWrapped = from === start
    let after = skip(from)
    let last: string | null = null
    for (let pages = 0; pages < MOST_PAGES; pages++) {
      const keys = await this.#kv.list(start, { limit: PAGE, after })
      const end = hasWrapped && from !== start ? keys.findIndex((key) => key > from) : -1
      sorter.add(end === -1 ? keys : keys.slice(0, end))
      if (keys.length > 0) last = groupOfHint(keys.at(-1)!)
      if (end !== -1) return null
      if (keys.length < PAGE) {
        if (hasWrapped) {
          if (keys.length === 0 && after === start) this.#noneAt.set(queue, this.#timers.mono())
          return null
        }
        hasWrapped = true
        after = skip(start)
      } else after = skip(behindPage(queue, keys.at(-1)!, sorter))
      if (pages + 1 >= FEW_PAGES && isEnough()) break
    }
    return last
  }
}

/** If the page ended within a group of which it has shown ready hints, the next page begins with the next group. */
const behindPage = (queue: string, last: string, { readyGroups }: HintSorter): string => {
  const group = groupOfHint(last)!
  return readyGroups.has(group) ? behindGroup(queue, group) : last
}
