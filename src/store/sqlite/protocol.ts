/** What travels between the store and its thread. */
import type { Code, ErrorDetails } from '../../core/errors.ts'
import type { KeyRecord } from '../../core/idempotency.ts'
import type { Instant } from '../../core/task.ts'
import type { PackedLeases } from '../packed-leases.ts'
import type { KeeperReport, Page, Query, Removal, Renewal, Want } from '../store.ts'
import type { Columns } from './columns.ts'
import type { ChangeRows } from './commit.ts'
import type { Endings } from './endings.ts'
import type { InsertRow } from './insert.ts'

export interface ThreadData {
  readonly path: string
  readonly create: boolean
  readonly identity: string
}

/** Calls that write; those that wait together share one transaction. */
export type WriteCall =
  | { readonly call: 'insert'; readonly rows: readonly InsertRow[]; readonly now: Instant | null }
  /** Fresh tasks without keys: the common case. */
  | { readonly call: 'insert-plain'; readonly tasks: Columns }
  | { readonly call: 'claim'; readonly want: Want }
  | { readonly call: 'commit'; readonly changes: ChangeRows }
  /** The common case: whole or not at all. */
  | { readonly call: 'commit-endings'; readonly endings: readonly Endings[] }
  | { readonly call: 'renew'; readonly renewals: readonly Renewal[]; readonly now: Instant | null }
  | { readonly call: 'remove'; readonly removals: readonly Removal[] }
  | { readonly call: 'put-document'; readonly name: string; readonly value: string; readonly version: number }
  | { readonly call: 'delete-document'; readonly name: string; readonly version: number }
  | { readonly call: 'put-orphans'; readonly keys: readonly KeyRecord[]; readonly now: Instant | null }

export type ReadCall =
  | { readonly call: 'now' }
  | { readonly call: 'get'; readonly ids: readonly string[] }
  | { readonly call: 'find'; readonly key: string }
  | { readonly call: 'list'; readonly query: Query; readonly page: Page }
  | { readonly call: 'count'; readonly query: Query; readonly cap: number; readonly now: Instant | null }
  | { readonly call: 'glance-list'; readonly query: Query; readonly page: Omit<Page, 'order'>; readonly most: number }
  | {
      readonly call: 'glance-count'
      readonly query: Query
      readonly cap: number
      readonly most: number
      readonly now: Instant | null
    }
  | {
      readonly call: 'glance-queues'
      readonly names: readonly string[]
      readonly cap: number
      readonly now: Instant | null
    }
  | { readonly call: 'get-document'; readonly name: string }
  | { readonly call: 'list-documents'; readonly prefix: string }
  | { readonly call: 'list-orphans'; readonly limit: number; readonly after?: string }

/** Not answered. */
export type Notice =
  | { readonly notice: 'watch'; readonly on: boolean }
  | {
      readonly notice: 'keep'
      readonly keeper: number
      readonly board: SharedArrayBuffer
      readonly leaseTtl: number
      readonly every: number
    }
  | { readonly notice: 'hold'; readonly keeper: number; readonly leases: PackedLeases }
  | { readonly notice: 'progress'; readonly keeper: number; readonly slot: number; readonly progress: string }
  | { readonly notice: 'leave'; readonly keeper: number }
  | { readonly notice: 'close' }

export type Call = WriteCall | ReadCall
export type ToThread = { readonly n: number; readonly ask: Call } | Notice

export interface PlainError {
  readonly code: Code
  readonly message: string
  readonly details: ErrorDetails
}

export type Reply = { readonly n: number; readonly value: unknown } | { readonly n: number; readonly error: PlainError }

export type FromThread =
  | { readonly kind: 'opened'; readonly identity: string; readonly created: boolean }
  | { readonly kind: 'refused'; readonly error: PlainError }
  | { readonly kind: 'replies'; readonly replies: readonly Reply[] }
  | { readonly kind: 'wake' }
  | {
      readonly kind: 'report'
      readonly keeper: number
      readonly results: readonly KeeperReport[]
      readonly renewedAt: number
    }
