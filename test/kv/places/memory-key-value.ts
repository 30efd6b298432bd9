/** A versioned key-value store in memory. Several stores may share one map. */
import type { Entry, KeyValue, ListRange, Mark } from '../../../src/store/kv/access/key-value.ts'

export class KeyValueMap {
  readonly entries = new Map<string, Entry>()
  #writes = 0

  nextMark(): Mark {
    return `m${++this.#writes}`
  }
}

export class MemoryKeyValue implements KeyValue {
  readonly address = 'kv:'
  readonly inlineLimit: number
  readonly longestHint = 1_000
  readonly #map: KeyValueMap
  readonly #wall: () => number

  constructor(map: KeyValueMap = new KeyValueMap(), { inlineLimit = 262_144, wall = Date.now } = {}) {
    this.#map = map
    this.inlineLimit = inlineLimit
    this.#wall = wall
  }

  async get(key: string): Promise<Entry | null> {
    return this.#map.entries.get(key) ?? null
  }

  async create(key: string, value: string): Promise<Mark | null> {
    return this.#map.entries.has(key) ? null : this.#set(key, value)
  }

  async update(key: string, value: string, mark: Mark): Promise<Mark | null> {
    return this.#map.entries.get(key)?.mark === mark ? this.#set(key, value) : null
  }

  #set(key: string, value: string): Mark {
    const mark = this.#map.nextMark()
    this.#map.entries.set(key, { value, mark })
    return mark
  }

  async delete(keys: readonly string[]): Promise<void> {
    for (const key of keys) this.#map.entries.delete(key)
  }

  async list(prefix: string, { after, limit }: ListRange): Promise<string[]> {
    return [...this.#map.entries.keys()]
      .filter((key) => key.startsWith(prefix) && (after === undefined || key > after))
      .sort()
      .slice(0, limit)
  }

  async now(): Promise<{ at: number; uncertainty: number }> {
    return { at: this.#wall(), uncertainty: 0 }
  }

  async close(): Promise<void> {}
}
