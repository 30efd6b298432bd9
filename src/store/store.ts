/** What a store must do, in prose and types. It keeps tasks; it never decides what happens to one. */

import type { ClaimLimits } from '../core/flow/group-turns.ts'
import type { LeaseRenewal } from '../core/guards.ts'
import type { KeyRecord } from '../core/idempotency.ts'
import type { Fact } from '../core/observe/diagnosis.ts'
import type { Change, Instant, TaskRecord, TaskStatus } from '../core/task.ts'
import type { CountedView, ViewFilter } from '../core/views.ts'
import type { LeaseBoard } from './threads/lease-board.ts'

/**
 * What not every store can do; each has a page in docs/stores.
 * - `exact-order`: a claim returns exactly the first tasks of the queue, not approximately.
 * - `transactions`: insert, and changes of a task by `join`, can be part of the caller's own transaction.
 * - `host-clock`: the store's time is this machine's; no estimate is needed.
 * - `due-of-all-queues`: a claim reports the overdue tasks of every queue of the store, not only of the one that it names.
 */
export type Capability = 'exact-order' | 'transactions' | 'host-clock' | 'due-of-all-queues'

/** A task to insert, with its idempotency key. */
export interface Insertion {
  readonly task: TaskRecord
  /** Present when the task has an idempotency key. */
  readonly key?: KeyRecord
  /** The key may stand for this task already: then it stands for the new one from now on. */
  readonly replaces?: string
}

/**
 * `created`: task and key were written together. `existing`: the key belongs to another task, which is returned with its key
 * record (`task` is null if it was removed and the key still exists). `clash`: the id is taken; the existing task is returned,
 * so that the caller can recognise its own earlier write.
 */
export type Inserted =
  | { readonly outcome: 'created' }
  | { readonly outcome: 'existing'; readonly key: KeyRecord; readonly task: TaskRecord | null }
  | { readonly outcome: 'clash'; readonly task: TaskRecord }

/** What a worker asks of a store: how many tasks, of which queues and types. */
export interface ClaimRequest {
  readonly queue: string
  /** Only tasks of these types; null means any type. */
  readonly types: readonly string[] | null
  readonly limit: number
  readonly workerId: string
  /** Lease tokens are unique and begin with `${op}.`. */
  readonly op: string
  readonly leaseTtl: number
  /** The most overdue tasks to report. */
  readonly dueLimit: number
  /** null means the store's clock, read inside the claim. */
  readonly now: Instant | null
  /** Only this task. */
  readonly id?: string
  /** The limits of the queue. They hold exactly, however many processes claim beside each other. Left out: it has none. */
  readonly limits?: ClaimLimits
}

/** The tasks that were claimed, and when to ask again. */
export interface ClaimResult {
  /**
   * Claimed by this call, exactly as machine.claim decides, without history, in the order to run them. If payloads are large there may be
   * fewer than the limit; then `next` is now.
   */
  readonly leased: readonly TaskRecord[]
  /**
   * Tasks for the machine to decide about: running ones whose lease has lapsed and pending ones that have expired, of any type. They come
   * from every queue if the store has `due-of-all-queues`, otherwise from this queue. At most `dueLimit`. Without history.
   */
  readonly due: readonly TaskRecord[]
  /**
   * The next instant at which a claim may find something without a wake-up; null if none is known. Only meaningful when nothing is
   * left to lease. A claim that leased something may return now, so that the next claim finds out.
   */
  readonly next: Instant | null
  /** With `limits.turns`: groups with a ready task but no place, in the store's order. */
  readonly full?: readonly string[]
  /**
   * With `limits`: a ready task was left because of `concurrency` or `perGroup`. It may become claimable whenever a task ends. Only meaningful
   * when fewer were leased than wanted.
   */
  readonly isHeldBack?: boolean
}

/** Which groups of a queue are listed, and from which on. */
export interface GroupsRequest {
  readonly queue: string
  readonly types: readonly string[] | null
  readonly after: string | null
  readonly limit: number
  readonly now: Instant | null
}

/** `conflict`: the revision (or the lease's end) was not the one expected; nothing was written. */
export type Committed = 'written' | 'conflict' | 'gone'

/** The renewal of one lease: which task, and until when. */
export interface Renewal extends LeaseRenewal {
  readonly id: string
}

/**
 * `cancel`: still held, but a cancellation was requested. `locked`: still held, but not renewed, because a transaction of the caller has locked the
 * row. Until that ends, no other worker can take the lease.
 */
export type Renewed = 'held' | 'cancel' | 'lost' | 'locked'

/** A task that is to be removed, and the revision that it must have. */
export interface Removal {
  readonly id: string
  readonly revision: number
  /** An operator's delete ends the task's idempotency key too; prune and retention leave it to its own lifetime. */
  readonly endKey: boolean
}

/** What became of a removal. */
export type Removed = 'removed' | 'conflict' | 'gone'

/** A filter of tasks as a store takes it. */
export interface Query {
  /** In this queue. */
  readonly queue?: string
  /** Of this type. */
  readonly type?: string
  /** Of this group. */
  readonly group?: string
  /** Tasks in any of these views. */
  readonly views?: readonly ViewFilter[]
  /** With this tag, exactly. */
  readonly tag?: { readonly name: string; readonly value: string }
  /** Running tasks held by this worker. */
  readonly workerId?: string
  /** Submitted later than this instant. */
  readonly createdAfter?: Instant
  /** Submitted earlier. */
  readonly createdBefore?: Instant
  /** Ended earlier, in whatever status. */
  readonly completedBefore?: Instant
  /**
   * Submitted or moved after this instant. A store may find recently submitted tasks by the time in their id. A task whose id has
   * another format is then found only after its first move.
   */
  readonly updatedAfter?: Instant
  /** Submitted or last moved before this instant. */
  readonly updatedBefore?: Instant
}

/** A page of tasks to read: its size and where it begins. */
export interface Page {
  /** Ordered by id, which for ids made by Holdfast is the time of creation. */
  readonly order: 'newest' | 'oldest'
  readonly limit: number
  /** Continue after this id. */
  readonly after?: string
  /** For views that depend on time; null means the store's clock. */
  readonly now: Instant | null
  /**
   * Scan at most about this many tasks, unless an index leads to the matches. If absent, scan until the page is full. A store may ignore it if its lists are never long.
   */
  readonly maxScanned?: number
}

/** Tasks, and the cursor of the next page. */
export interface TaskList {
  readonly tasks: readonly TaskRecord[]
  /** The scan stopped before the page was full and before all tasks were scanned: continue after this id. */
  readonly stoppedAt: string | null
}

/** How far `count` counts, and from when. */
export interface CountLimits {
  /** Stop counting here. With `maxScanned`, a number that the store knows at no cost may be larger. */
  readonly cap: number
  /** Like `maxScanned` of a page. */
  readonly maxScanned?: number
  readonly now: Instant | null
}

/** A small record beside the tasks: a schedule, a pause, a registration. */
export interface Document {
  readonly name: string
  readonly value: string
  readonly version: number
}

/** Small named texts with a version: pauses, queues that exist, schedules, worker registrations. */
export interface Documents {
  get(name: string): Promise<Document | null>
  /** Writes if the current version is `version` (0: only if there is no document). Returns the new version, or null on a conflict. */
  put(name: string, value: string, version: number): Promise<number | null>
  /** All documents whose name begins with `prefix`, ordered by name. */
  list(prefix: string): Promise<readonly Document[]>
  /** Returns false if the version differs; true also if there was no document. */
  delete(name: string, version: number): Promise<boolean>
}

/** Keys that outlived their task: a removal with `endKey: false` leaves the key until its own expiry. */
export interface DetachedKeys {
  /** In any stable order; `after` is the last key of the previous page. Includes expired keys that are not swept yet. */
  list(page: { readonly limit: number; readonly after?: string }): Promise<readonly KeyRecord[]>
  /**
   * Writes keys of another store as insert would, without a task. Returns false for a key that is already live here; that one is
   * left alone. A key whose task is in this store is not detached.
   */
  put(keys: readonly KeyRecord[], now: Instant | null): Promise<readonly boolean[]>
}

/** The number of tasks of a queue in each view. Retrying tasks are not counted as scheduled. */
export interface QueueCounts extends Readonly<Record<CountedView, number>> {
  /** The counts that are lower bounds, because counting stopped. */
  readonly capped: readonly CountedView[]
}

/** What a count found. */
export interface Counted {
  readonly count: number
  /** Counting stopped, so there may be more. */
  readonly capped: boolean
}

/** Renews leases on a thread that a busy event loop cannot stop. The board shows it which tasks have started or ended. */
export interface Keeper {
  /**
   * A claim of this worker is about to be sent. Its leases are renewed even before the board shows that the reply was seen, because the
   * reply may wait behind a busy event loop. If absent, leases are renewed from `hold` on. `since` is monotonic: the keeper may hear of it late.
   */
  claiming?(op: string, ticket: number, since: number): void
  /** For stores that lease one task after another: the claim `op` is about to lease this one. */
  leasing?(op: string, id: string): void
  /** `since` is monotonic: the leases began no earlier. The keeper may hear of them late, and renews them a third of their length after that. */
  hold(leases: readonly HeldLease[], since: number): void
  /** Renews soon, and writes this JSON text with it. */
  progress(slot: number, progress: string): void
  /** Delivers pending reports synchronously, before the event loop gets to them. Absent if reports are never delayed. */
  reportNow?(): void
  close(): void
}

/** A lease that a process holds, for its renewal. */
export interface HeldLease {
  /** Its slot on the board. */
  readonly slot: number
  readonly id: string
  readonly token: string
  readonly progress?: string
}

/** Options of the keeper of leases. */
export interface KeeperOptions {
  /** Who holds the leases. */
  readonly workerId: string
  /** Which leases to renew, shared with the thread. */
  readonly board: LeaseBoard
  /** Milliseconds. */
  readonly leaseTtl: number
  /** Milliseconds between two renewals. */
  readonly every: number
  /** All leases that are held now, for a thread that was restarted. */
  held(): readonly HeldLease[]
  /** `renewedAt` is monotonic: when the renewals that succeeded were sent. */
  report(results: readonly KeeperReport[], renewedAt: number): void
}

/** What the keeper did for one lease. */
export interface KeeperReport {
  /** UNHELD for a lease whose claim reply has not been seen. */
  readonly slot: number
  readonly token: string
  readonly renewed: Renewed
}

/** The caller's open transaction. Where it `isSynchronous`, its methods return or throw at once. */
export interface JoinedTransaction {
  readonly isSynchronous: boolean
  /** As it is in this transaction. */
  read(id: string): TaskRecord | null | Promise<TaskRecord | null>
  /** Reads the task again, keeps others from changing it until the transaction ends, and writes what `decide` returns. */
  change(id: string, decide: (task: TaskRecord | null) => Change | null): void | Promise<void>
}

/** null means that any queue may have work. */
export type WakeListener = (queues: readonly string[] | null) => void

/** How many records had a date in the future. */
export interface ClockRepaired {
  readonly leases: number
  readonly tasks: number
}

/** The slot of a lease that is not held yet. */
export const UNHELD = -1

/** Options of `insert`. */
export interface InsertOptions {
  /** The caller's transaction, for stores with `transactions`. The insert takes effect when it commits. */
  readonly tx?: unknown
  /** null: the store's clock. */
  readonly now: Instant | null
  /**
   * The caller's estimate of the store's time. A store that reads its clock during the insert writes nothing and rejects with
   * STORE_CONFLICT if its clock differs, because the stamps of the tasks are wrong then.
   */
  readonly expected?: Instant
}

/**
 * Every method may reject with a HoldfastError of the STORE_ family. After `STORE_UNAVAILABLE` it is unknown whether the call took
 * effect; after all others nothing was written.
 */
export interface Store {
  readonly capabilities: ReadonlySet<Capability>
  /** The address without secrets, for messages. */
  readonly address: string
  /** The shortest sensible lease of this store, and the default. */
  readonly leaseTtl: number
  /** How many concurrent claims by one worker pay off: more than one hides the round trip to a server. */
  readonly claimsAtOnce: number

  now(): Promise<{ readonly at: Instant; readonly uncertainty: number }>
  /** Atomic per task: writes task and key, or neither. Accepts a task in any status. */
  insert(insertions: readonly Insertion[], options: InsertOptions): Promise<readonly Inserted[]>
  claim(request: ClaimRequest): Promise<ClaimResult>
  /**
   * Writes each change independently, if its revision still holds. A change that takes a lapsed lease (`leaseExpiresAt`) may also
   * be a conflict because the call was delayed.
   */
  commit(changes: readonly Change[]): Promise<readonly Committed[]>
  /** Compares the token, writes `lease.expiresAt` and `progress` only, leaves the revision. Succeeds after the lease's end if no other worker took the task. */
  renew(renewals: readonly Renewal[], now: Instant | null): Promise<readonly Renewed[]>
  remove(removals: readonly Removal[]): Promise<readonly Removed[]>

  /** With history, in the order of the ids; null where there is no task. */
  get(ids: readonly string[]): Promise<readonly (TaskRecord | null)[]>
  /** The record of `key`, expired or not, and its task if that still exists. */
  find(key: string): Promise<{ readonly key: KeyRecord; readonly task: TaskRecord | null } | null>
  /**
   * Without history. A page ends early with the task that brings it to `PAGE_WEIGHT` (core/storage/page-weight.ts): `isLastPage` tells whether
   * there may be more.
   */
  list(query: Query, page: Page): Promise<TaskList>
  count(query: Query, limits: CountLimits): Promise<Counted>
  readonly documents: Documents

  /** Calls the listener when there may be work, from this process or another. It is only a hint. Returns a function that unsubscribes. */
  wake(listener: WakeListener): () => void
  close(): Promise<void>

  // The following members are optional.

  /** For now, a second claim of a worker from the same queue would only slow down the first. */
  isCongested?(): boolean
  /** Joins the caller's own open transaction. Present in stores with `transactions`. */
  join?(tx: unknown): JoinedTransaction

  /**
   * Groups of the queue that have a ready task of these types, beginning behind `after`, in the order in which they take turns. Left out: a
   * queue of this store cannot have a rate per group.
   */
  waitingGroups?(request: GroupsRequest): Promise<readonly string[]>
  /** In the order of the names. If absent, `count` is called for every view of every queue. */
  countQueues?(names: readonly string[], cap: number, now: Instant | null): Promise<readonly QueueCounts[]>
  /** If absent, exports and transfers carry no keys without a task. */
  readonly detachedKeys?: DetachedKeys
  /**
   * Writes that began before this instant have ended, as far as this store has observed since the first call, so nothing stamped
   * earlier can still become visible. If absent, no write takes longer than some seconds.
   */
  visibleUntil?(): Promise<Instant>
  /** Facts about its health, for `doctor`. core/observe/diagnosis.ts decides which of them are problems, and how to fix them. */
  examine?(): Promise<readonly Fact[]>
  /** Repairs what a process with a clock far ahead has written. Only for persistent stores that use the host's clock. */
  repairClock?(): Promise<ClockRepaired>
  /**
   * Accepts a store that was restored from a backup: gives it a new identity, and raises the fences of all tasks that may run again by more than
   * can have been claimed since the backup. Returns the number of those tasks.
   */
  acceptRestore?(): Promise<number>
  /** Renews leases off the event loop. If absent, the runtime sends heartbeats through `renew`. */
  keeper?(options: KeeperOptions): Keeper
}

export type { ClaimLimits, GroupRange, GroupTurns } from '../core/flow/group-turns.ts'
export type { Change, Instant, KeyRecord, TaskRecord, TaskStatus }
