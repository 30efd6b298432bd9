/** A copy of the list of all hint keys, kept up to date by announcements between two lists. */
import type { RetryingKeyValue } from '../access/retrying-key-value.ts'
import type { Timers } from '../access/timers.ts'
import { queuePrefixOf } from '../records/hint-names.ts'
import { READY } from '../records/names.ts'

const LIST_PAGE = 1_000
/** A list may lack a key that was announced this long before it began, and show one that was removed this long before. */
const ADDED_OVERLAP = 2_000
const REMOVED_OVERLAP = 10_000
/** With more changes than this between two lists, the copy is dropped. */
const MOST_CHANGES = 20_000
/** When one list cannot show all hints, the next attempt comes after this time. */
const TOO_MANY_LIFE = 10_000

export class HintListing {
  readonly #kv: RetryingKeyValue
  readonly #timers: Timers
  /** By the prefix of the queue. */
  #queues = new Map<string, Set<string>>()
  #sorted = new Map<string, readonly string[]>()
  /** Monotonic. While the copy is valid, a queue that is not in the map has no hints. */
  #listedAt = Number.NEGATIVE_INFINITY
  #tooManyAt = Number.NEGATIVE_INFINITY
  #listing: Promise<boolean> | null = null
  #added = new Map<string, number>()
  #removed = new Map<string, number>()

  constructor(kv: RetryingKeyValue, timers: Timers) {
    this.#kv = kv
    this.#timers = timers
  }

  /** The keys of a queue in order, from a list no older than `maxAge`. null: there are too many hints for one list. */
  async keysOf(prefix: string, maxAge: number): Promise<readonly string[] | null> {
    if (this.#timers.mono() - this.#listedAt < maxAge) return this.#keysOf(prefix)
    if (this.#timers.mono() - this.#tooManyAt < TOO_MANY_LIFE) return null
    this.#listing ??= this.#list().finally(() => {
      this.#listing = null
    })
    return (await this.#listing) ? this.#keysOf(prefix) : null
  }

  #keysOf(prefix: string): readonly string[] {
    const known = this.#sorted.get(prefix)
    if (known !== undefined) return known
    const sorted = [...(this.#queues.get(prefix) ?? [])].sort()
    this.#sorted.set(prefix, sorted)
    return sorted
  }

  /** False: there are too many. */
  async #list(): Promise<boolean> {
    const begun = this.#timers.mono()
    const keys = await this.#kv.list(READY, { limit: LIST_PAGE })
    if (keys.length >= LIST_PAGE) {
      this.#tooManyAt = begun
      this.#clear()
      return false
    }
    this.#replace(keys, begun)
    return true
  }

  /** The copy is incomplete: the next call lists. */
  expire(): void {
    this.#listedAt = Number.NEGATIVE_INFINITY
  }

  #clear(): void {
    this.#queues = new Map()
    this.#sorted = new Map()
    this.#added = new Map()
    this.#removed = new Map()
    this.expire()
  }

  add(key: string): void {
    if (this.#added.size > MOST_CHANGES) this.#clear()
    this.#added.set(key, this.#timers.mono())
    this.#removed.delete(key)
    this.#put(key)
  }

  #put(key: string): void {
    const prefix = queuePrefixOf(key)
    const keys = this.#queues.get(prefix)
    if (keys?.has(key)) return
    if (keys === undefined) this.#queues.set(prefix, new Set([key]))
    else keys.add(key)
    this.#sorted.delete(prefix)
  }

  remove(key: string): void {
    const prefix = queuePrefixOf(key)
    if (this.#removed.size > MOST_CHANGES) this.#clear()
    this.#removed.set(key, this.#timers.mono())
    if (this.#queues.get(prefix)?.delete(key)) this.#sorted.delete(prefix)
  }

  #replace(keys: readonly string[], begun: number): void {
    this.#queues = new Map()
    this.#sorted = new Map()
    for (const [key, at] of this.#removed) if (at < begun - REMOVED_OVERLAP) this.#removed.delete(key)
    for (const [key, at] of this.#added) if (at < begun - ADDED_OVERLAP) this.#added.delete(key)
    for (const key of keys) if (key.startsWith(READY) && !this.#removed.has(key)) this.#put(key)
    for (const key of this.#added.keys()) if (!this.#removed.has(key)) this.#put(key)
    this.#listedAt = begun
  }
}
