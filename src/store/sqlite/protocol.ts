/** The messages between the store and its thread. */
import type { MessagePort } from 'node:worker_threads'
import type { Code, ErrorDetails } from '../../core/errors.ts'
import type { KeyRecord } from '../../core/idempotency.ts'
import type { Instant } from '../../core/task.ts'
import type { ClaimRequest, CountLimits, GroupsRequest, Page, Query, Removal, Renewal } from '../store.ts'
import type { PackedLeases } from '../threads/packed-leases.ts'
import type { ClockMark } from './file/clock-mark.ts'
import type { Columns } from './write/columns.ts'
import type { ChangeRows } from './write/commit.ts'
import type { Endings } from './write/commit-batch.ts'
import type { InsertRow } from './write/insert.ts'

export interface ThreadData {
  readonly path: string
  readonly create: boolean
  readonly identity: string
}

/** Calls that write. Those that wait at the same time share one transaction. */
export type WriteCall =
  | { readonly call: 'insert'; readonly rows: readonly InsertRow[]; readonly now: Instant | null }
  /** New tasks without keys: the common case. */
  | { readonly call: 'insert-plain'; readonly tasks: Columns }
  | { readonly call: 'claim'; readonly request: ClaimRequest }
  | { readonly call: 'commit'; readonly changes: ChangeRows }
  /** The common case. All endings are written, or none. */
  | { readonly call: 'commit-endings'; readonly endings: readonly Endings[] }
  | { readonly call: 'renew'; readonly renewals: readonly Renewal[]; readonly now: Instant | null }
  | { readonly call: 'remove'; readonly removals: readonly Removal[] }
  | { readonly call: 'put-document'; readonly name: string; readonly value: string; readonly version: number }
  | { readonly call: 'delete-document'; readonly name: string; readonly version: number }
  | { readonly call: 'put-detached-keys'; readonly keys: readonly KeyRecord[]; readonly now: Instant | null }
  | { readonly call: 'repair-clock' }
  | { readonly call: 'accept-restore' }

export type ReadCall =
  | { readonly call: 'now' }
  | { readonly call: 'get'; readonly ids: readonly string[] }
  | { readonly call: 'leased-by'; readonly workerId: string; readonly op: string }
  | { readonly call: 'find'; readonly key: string }
  | { readonly call: 'list'; readonly query: Query; readonly page: Page }
  | { readonly call: 'count'; readonly query: Query; readonly limits: CountLimits }
  | {
      readonly call: 'count-queues'
      readonly names: readonly string[]
      readonly cap: number
      readonly now: Instant | null
    }
  | { readonly call: 'waiting-groups'; readonly request: GroupsRequest }
  | { readonly call: 'get-document'; readonly name: string }
  | { readonly call: 'list-documents'; readonly prefix: string }
  | { readonly call: 'list-detached-keys'; readonly limit: number; readonly after?: string }

/** A message without a reply. */
export type Notice =
  | { readonly notice: 'watch'; readonly on: boolean }
  | {
      readonly notice: 'keep'
      readonly keeper: number
      readonly workerId: string
      readonly board: SharedArrayBuffer
      readonly reports: MessagePort
      readonly leaseTtl: number
      readonly every: number
    }
  | {
      readonly notice: 'claiming'
      readonly keeper: number
      readonly op: string
      readonly ticket: number
      readonly since: number
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
  | {
      readonly kind: 'opened'
      readonly identity: string
      readonly created: boolean
      /** The mark that an implausible clock has left in the file. */
      readonly ahead: ClockMark | null
    }
  | { readonly kind: 'refused'; readonly error: PlainError }
  | { readonly kind: 'replies'; readonly replies: readonly Reply[] }
  | { readonly kind: 'wake' }
