/** A key-value store that repeats failed calls and recognises its own write when only the reply was lost. */
import { isContactLost } from '../../../core/errors.ts'
import type { Instant } from '../../../core/task.ts'
import type { Priority } from './adaptive-concurrency.ts'
import type { Entry, KeyValue, LargeValueAccess, ListRange, Mark } from './key-value.ts'
import { Retry } from './retry.ts'

/**
 * A write is recognised by its value, so every value written to a key must be unique. Callers that may write the same content
 * twice add a nonce.
 */
export class RetryingKeyValue implements Omit<KeyValue, 'listWritten' | 'longestHint' | 'getChanged' | 'large'> {
  readonly address: string
  readonly inlineLimit: number
  readonly longestHint: number | undefined
  readonly retry = new Retry()
  /** null: a key can hold any value. */
  readonly large: LargeValueAccess | null
  readonly #kv: KeyValue

  constructor(kv: KeyValue) {
    this.#kv = kv
    this.address = kv.address
    this.inlineLimit = kv.inlineLimit
    this.longestHint = kv.longestHint
    this.large = kv.large === undefined ? null : this.#retrying(kv.large)
  }

  #retrying(large: LargeValueAccess): LargeValueAccess {
    return {
      get: (key) => this.retry.run(() => large.get(key)),
      create: (key, value) => this.retry.run(() => large.create(key, value)),
      delete: (keys) => this.retry.run(() => large.delete(keys)),
    }
  }

  get(key: string, priority: Priority = 'last'): Promise<Entry | null> {
    return this.retry.run(() => this.#kv.get(key), priority)
  }

  create(key: string, value: string, priority: Priority = 'last'): Promise<Mark | null> {
    return this.#write(key, value, null, () => this.#kv.create(key, value), priority)
  }

  update(key: string, value: string, mark: Mark, priority: Priority = 'last'): Promise<Mark | null> {
    return this.#write(key, value, mark, () => this.#kv.update(key, value, mark), priority)
  }

  /** Creates the key, or updates it from `mark` if one is given. */
  put(key: string, value: string, mark: Mark | null, priority: Priority = 'last'): Promise<Mark | null> {
    return mark === null ? this.create(key, value, priority) : this.update(key, value, mark, priority)
  }

  async delete(keys: readonly string[]): Promise<void> {
    if (keys.length > 0) await this.retry.run(() => this.#kv.delete(keys))
  }

  list(prefix: string, range: ListRange): Promise<readonly string[]> {
    return this.retry.run(() => this.#kv.list(prefix, range))
  }

  /** All keys under a prefix, a page at a time. */
  async *pages(prefix: string, after?: string): AsyncGenerator<readonly string[]> {
    for (let cursor = after; ; ) {
      const keys = await this.list(prefix, cursor === undefined ? { limit: PAGE } : { limit: PAGE, after: cursor })
      if (keys.length > 0) yield keys
      if (keys.length < PAGE) return
      cursor = keys.at(-1)!
    }
  }

  /** null: this server does not know when a key was written. A list that breaks off is not repeated here. */
  listWritten(prefix: string, since: Instant): AsyncIterable<readonly string[]> | null {
    return this.#kv.listWritten?.(prefix, since) ?? null
  }

  now(): Promise<{ at: Instant; uncertainty: number }> {
    return this.retry.run(() => this.#kv.now())
  }

  close(): Promise<void> {
    return this.#kv.close()
  }

  /** `before`: the mark that the key must have; null: the key must not exist. */
  async #write(
    key: string,
    value: string,
    before: Mark | null,
    write: () => Promise<Mark | null>,
    priority: Priority,
  ): Promise<Mark | null> {
    let isUnclear = false
    return this.retry.run(async () => {
      if (isUnclear) {
        const found = await this.#kv.get(key)
        if (found?.value === value) return found.mark
        if ((found?.mark ?? null) !== before) return null
      }
      try {
        const mark = await write()
        if (mark !== null || !isUnclear) return mark
      } catch (error) {
        isUnclear ||= isContactLost(error)
        throw error
      }
      // The write was refused, perhaps because an earlier try took effect after all.
      const found = await this.#kv.get(key)
      return found?.value === value ? found.mark : null
    }, priority)
  }
}

const PAGE = 1_000
