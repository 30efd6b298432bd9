/** Counts the requests of a store by kind. */
import type { Entry, KeyValue, ListRange, Mark } from '../../../src/store/kv/access/key-value.ts'

export class CountingKeyValue implements KeyValue {
  readonly address: string
  readonly inlineLimit: number
  readonly longestHint?: number
  readonly #kv: KeyValue
  #counts: Record<string, number> = {}
  readonly log: string[] = []

  constructor(kv: KeyValue) {
    this.#kv = kv
    this.address = kv.address
    this.inlineLimit = kv.inlineLimit
    if (kv.longestHint !== undefined) this.longestHint = kv.longestHint
  }

  /** The counts since the last call. */
  take(): Record<string, number> {
    const counts = this.#counts
    this.#counts = {}
    this.log.length = 0
    return counts
  }

  #count(kind: string, key: string): void {
    this.#counts[kind] = (this.#counts[kind] ?? 0) + 1
    this.log.push(`${kind} ${key}`)
  }

  get(key: string): Promise<Entry | null> {
    this.#count('GET', key)
    return this.#kv.get(key)
  }
  async getChanged(key: string, mark: Mark): Promise<Entry | null | 'same'> {
    this.#count('GET', key)
    const entry = await this.#kv.get(key)
    return entry?.mark === mark ? 'same' : entry
  }
  create(key: string, value: string): Promise<Mark | null> {
    this.#count('PUT', key)
    return this.#kv.create(key, value)
  }
  update(key: string, value: string, mark: Mark): Promise<Mark | null> {
    this.#count('PUT', key)
    return this.#kv.update(key, value, mark)
  }
  delete(keys: readonly string[]): Promise<void> {
    this.#count('DELETE', keys[0]!)
    return this.#kv.delete(keys)
  }
  list(prefix: string, range: ListRange): Promise<readonly string[]> {
    this.#count('LIST', prefix)
    return this.#kv.list(prefix, range)
  }
  now(): Promise<{ readonly at: number; readonly uncertainty: number }> {
    return this.#kv.now()
  }
  close(): Promise<void> {
    return this.#kv.close()
  }
}
