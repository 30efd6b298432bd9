/** What the engine needs of a versioned key-value store, such as a bucket of an object store. */
import type { Instant } from '../../../core/task.ts'

/** The version of a key: opaque, and returned to the store unchanged. Two writes never have the same mark. */
export type Mark = string

export interface Entry {
  readonly value: string
  readonly mark: Mark
}

export interface ListRange {
  /** Only keys that sort after this one, which need not exist. */
  readonly after?: string
  readonly limit: number
}

/** For values that may be too large for one key. */
export interface LargeValueAccess {
  get(key: string): Promise<string | null>
  /** Keys are never reused, so a repeated call changes nothing. */
  create(key: string, value: string): Promise<void>
  delete(keys: readonly string[]): Promise<void>
}

/**
 * Keys consist of `A-Z a-z 0-9 _ - = ~ . /`. Any call may reject with STORE_UNAVAILABLE, which leaves open whether a write took
 * effect. Every other answer is certain. A read sees every write that was answered before the read was sent.
 */
export interface KeyValue {
  /** For messages: contains no secrets. */
  readonly address: string
  /** In bytes. Larger fields of a task are stored under keys of their own, so that a move does not write them again. */
  readonly inlineLimit: number
  /** The longest key in bytes, where one hint for several tasks is cheaper than one each. Left out: it is not. */
  readonly longestHint?: number
  /** Left out: a key can hold any value. */
  readonly large?: LargeValueAccess
  get(key: string): Promise<Entry | null>
  /** Reads the key only if its mark is another one; else `same`. Left out: the store has no conditional read. */
  getChanged?(key: string, mark: Mark): Promise<Entry | null | 'same'>
  /** null: the key exists. */
  create(key: string, value: string): Promise<Mark | null>
  /** null: the key has another mark, or does not exist. */
  update(key: string, value: string, mark: Mark): Promise<Mark | null>
  /** Unconditional, so only for keys that no process may be writing. Keys may be missing. */
  delete(keys: readonly string[]): Promise<void>
  /** In byte order. Fewer keys than the limit: there are no more. */
  list(prefix: string, range: ListRange): Promise<readonly string[]>
  /** Keys that were written at or after `since` by the store's clock, and perhaps others, in pages. Left out: unknown. */
  listWritten?(prefix: string, since: Instant): AsyncIterable<readonly string[]>
  /** The store's clock: correct within the uncertainty, and never going back. */
  now(): Promise<{ readonly at: Instant; readonly uncertainty: number }>
  close(): Promise<void>
}
