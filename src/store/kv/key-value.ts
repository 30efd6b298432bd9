/** What the engine needs of a place that keeps versioned keys: an object store, a key-value bucket. */
import type { Instant } from '../../core/task.ts'

/** Which write of a key it was: opaque, handed back exactly as it came. Two writes never have the same one. */
export type Mark = string

export interface Entry {
  readonly value: string
  readonly mark: Mark
}

export interface ListRange {
  /** Only keys that sort after this one; it need not exist. */
  readonly after?: string
  readonly limit: number
}

/**
 * Keys are made of `A-Z a-z 0-9 _ - = ~ . /`. Any call may reject with STORE_UNAVAILABLE: whether a write took effect is then
 * open. Every other answer is certain, and reads see every write that was answered before they were asked.
 */
export interface KeyValue {
  /** Where it is, without secrets: for messages. */
  readonly address: string
  /** Texts longer than this are kept under keys of their own, so that a move does not write them again. */
  readonly longText: number
  /** How many bytes a key may have, where one hint for several tasks is cheaper than one each. Left out: it is not. */
  readonly longestHint?: number
  get(key: string): Promise<Entry | null>
  /** Writes a key that is not there. null: it is. */
  create(key: string, value: string): Promise<Mark | null>
  /** Writes if the key still has this mark. null: it has another, or is gone. */
  update(key: string, value: string, mark: Mark): Promise<Mark | null>
  /** Without a condition, so only for what nobody may be writing. Keys that are not there are fine. */
  delete(keys: readonly string[]): Promise<void>
  /** In the order of their bytes. Fewer than the limit: there are no more. */
  list(prefix: string, range: ListRange): Promise<readonly string[]>
  /** Page by page, keys that were written at or after `since` by its own clock, and perhaps others. Left out: it cannot tell. */
  listWritten?(prefix: string, since: Instant): AsyncIterable<readonly string[]>
  /** Its own clock: right to within the uncertainty, and never going back. */
  now(): Promise<{ readonly at: Instant; readonly uncertainty: number }>
  close(): Promise<void>
}
