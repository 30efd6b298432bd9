/** What a store must do, in prose and types. It keeps tasks; it never decides what happens to one. */
import type { Fact } from '../core/diagnosis.ts'
import type { LeaseRenewal } from '../core/guards.ts'
import type { KeyRecord } from '../core/idempotency.ts'
import type { Change, Instant, TaskRecord, TaskStatus } from '../core/task.ts'
import type { CountedView, ViewFilter } from '../core/views.ts'
import type { LeaseBoard } from './threads/lease-board.ts'

/**
 * What not every store can do; each has a page in docs/stores.
 * - `exact-order`: a claim gives the very first tasks of the queue, not nearly the first.
 * - `transactions`: insert can join the caller's own transaction.
 * - `host-clock`: the store's time is this machine's; no estimate is needed.
 * - `due-of-all-queues`: a claim reports what is overdue in every queue of the store, not only in the one that it names.
 */
export type Capability = 'exact-order' | 'transactions' | 'host-clock' | 'due-of-all-queues'

export interface Insertion {
  readonly task: TaskRecord
  /** Present when the task has an idempotency key. */
  readonly key?: KeyRecord
}

/**
 * `created`: task and key are written, together. `existing`: the key stands for another task already, which comes with
 * its key record (`task` is null when it was removed and the key lives on). `clash`: the id is taken; the task that has
 * it comes back, so that the caller can recognise its own earlier write.
 */
export type Inserted =
  | { readonly outcome: 'created' }
  | { readonly outcome: 'existing'; readonly key: KeyRecord; readonly task: TaskRecord | null }
  | { readonly outcome: 'clash'; readonly task: TaskRecord }

export interface ClaimRequest {
  readonly queue: string
  /** Only tasks of these types; null: of any. */
  readonly types: readonly string[] | null
  readonly limit: number
  readonly workerId: string
  /** Lease tokens are unique and begin with it: `${op}.` and anything. */
  readonly op: string
  readonly leaseTtl: number
  /** How many overdue tasks to report at the most. */
  readonly dueLimit: number
  /** null: the store's own clock, read inside the claim. */
  readonly now: Instant | null
}

export interface ClaimResult {
  /**
   * Claimed just now, exactly as machine.claim would; without history; in the order to run them. Where payloads are large there may be fewer
   * than fit the limit: then `next` is now.
   */
  readonly leased: readonly TaskRecord[]
  /**
   * For the machine to decide about: running tasks whose lease has lapsed, pending ones that have expired, also of types that were not
   * asked for. Of every queue of the store where it has `due-of-all-queues`, else of this queue. At most `dueLimit`. Without history.
   */
  readonly due: readonly TaskRecord[]
  /**
   * The next instant at which a claim may find something without a wake-up; null: none is known. Only meaningful when nothing is
   * left to lease; a claim that leased something may answer now, so that the next one finds out.
   */
  readonly next: Instant | null
}

/** `conflict`: the revision (or the lease's end) was not the one expected; nothing was written. */
export type Committed = 'written' | 'conflict' | 'gone'

export interface Renewal extends LeaseRenewal {
  readonly id: string
}

/** `cancel`: still held, but a cancellation was requested. */
export type Renewed = 'held' | 'cancel' | 'lost'

export interface Removal {
  readonly id: string
  readonly revision: number
  /** An operator's delete ends the task's idempotency key too; prune and retention leave it to its own lifetime. */
  readonly endKey: boolean
}

export type Removed = 'removed' | 'conflict' | 'gone'

export interface Query {
  readonly queue?: string
  readonly type?: string
  /** Any of these. */
  readonly views?: readonly ViewFilter[]
  readonly tag?: { readonly name: string; readonly value: string }
  /** Running tasks held by this worker. */
  readonly workerId?: string
  readonly createdAfter?: Instant
  readonly createdBefore?: Instant
  readonly completedBefore?: Instant
  /**
   * Made or moved after this instant. What was made lately and not yet moved may be found by the time in its id alone: a task
   * with an id of another kind then comes with its first move.
   */
  readonly updatedAfter?: Instant
  /** Last made or moved before this instant. */
  readonly updatedBefore?: Instant
}

export interface Page {
  /** By id, which for ids made by Holdfast is by time of creation. */
  readonly order: 'newest' | 'oldest'
  readonly limit: number
  /** Go on after this id. */
  readonly after?: string
  /** For the views that depend on time; null: the store's own clock. */
  readonly now: Instant | null
  /**
   * With `newest`: scan at most about this many tasks, unless an index leads to those that match. Left out: scan until the page
   * is full. A store may ignore it if its lists are never long.
   */
  readonly maxScanned?: number
}

export interface TaskList {
  readonly tasks: readonly TaskRecord[]
  /** The scan stopped before the page was full and before all tasks were scanned: continue after this id. */
  readonly stoppedAt: string | null
}

export interface CountLimits {
  /** Count no further. With `maxScanned`, a number that the store knows at no cost may be larger. */
  readonly cap: number
  /** As of a page. */
  readonly maxScanned?: number
  readonly now: Instant | null
}

export interface Document {
  readonly name: string
  readonly value: string
  readonly version: number
}

/** Small named texts with a version: pauses, queues that exist, schedules, worker registrations. */
export interface Documents {
  get(name: string): Promise<Document | null>
  /** Writes if the version is still the one given (0: only if there is none). The new version, or null on a conflict. */
  put(name: string, value: string, version: number): Promise<number | null>
  /** By name, all that begin with `prefix`. */
  list(prefix: string): Promise<readonly Document[]>
  /** False if the version was another one; true also when there was none. */
  delete(name: string, version: number): Promise<boolean>
}

/** Keys that outlived their task: a removal with `endKey: false` leaves the key until its own expiry. */
export interface DetachedKeys {
  /** In an order of the store's own; `after` is the last key of the page before. Includes expired keys that are not swept yet. */
  list(page: { readonly limit: number; readonly after?: string }): Promise<readonly KeyRecord[]>
  /**
   * Writes keys of another store, as insert would, without a task. False where a live key stands already, which stays as it is.
   * A key whose task is in this store is not detached.
   */
  put(keys: readonly KeyRecord[], now: Instant | null): Promise<readonly boolean[]>
}

/** The number of tasks of a queue in each view. Retrying tasks are not counted as scheduled. */
export interface QueueCounts extends Readonly<Record<CountedView, number>> {
  /** Lower bounds: counting stopped. */
  readonly capped: readonly CountedView[]
}

export interface Counted {
  readonly count: number
  /** There are more, or there may be: counting stopped. */
  readonly capped: boolean
}

/** Keeps leases alive on a thread that a busy event loop cannot stop. What has started or ended it sees on the board. */
export interface Keeper {
  /**
   * A claim of this worker is about to be sent. Until the board says that its reply was seen, what it leased is kept as well: the reply may
   * wait behind a busy event loop. Left out: kept from `hold` on.
   */
  claiming?(op: string, ticket: number): void
  hold(leases: readonly HeldLease[]): void
  /** Renews soon, and writes this JSON text with it. */
  progress(slot: number, progress: string): void
  /** Reports now what has been renewed by now, also when the event loop has not come to it. Left out: there is nothing to wait for. */
  reportNow?(): void
  close(): void
}

export interface HeldLease {
  /** Its place on the board. */
  readonly slot: number
  readonly id: string
  readonly token: string
  readonly progress?: string
}

export interface KeeperOptions {
  readonly workerId: string
  readonly board: LeaseBoard
  readonly leaseTtl: number
  readonly every: number
  /** All that is held now: for a thread that had to be started again. */
  held(): readonly HeldLease[]
  /** `renewedAt` is monotonic: when the renewals that succeeded were sent. */
  report(results: readonly KeeperReport[], renewedAt: number): void
}

export interface KeeperReport {
  /** UNHELD: of a claim whose reply has not been seen. */
  readonly slot: number
  readonly token: string
  readonly renewed: Renewed
}

/** null: any queue. */
export type WakeListener = (queues: readonly string[] | null) => void

/** How many had a date in the future. */
export interface ClockRepaired {
  readonly leases: number
  readonly tasks: number
}

/** The slot of a lease that is not held yet. */
export const UNHELD = -1

export interface InsertOptions {
  /** The caller's own transaction, where the store has `transactions`: the insert takes effect when it commits. */
  readonly tx?: unknown
  readonly now: Instant | null
  /**
   * What the caller takes for the store's time as it sends this. A store that reads its own clock in the insert writes nothing
   * and rejects with STORE_CONFLICT when its clock is elsewhere: the tasks have stamps that mean another instant.
   */
  readonly expected?: Instant
}

/**
 * Every method may reject with a HoldfastError of the STORE_ family. `STORE_UNAVAILABLE` leaves open
 * whether the call took effect; all others mean that nothing was written.
 */
export interface Store {
  readonly capabilities: ReadonlySet<Capability>
  /** Where it is, without secrets: for messages. */
  readonly address: string
  /** Shortest lease that is sensible here, and the default. */
  readonly leaseTtl: number
  /** How many claims at once by one worker are worth while: more than one hides the way to a server and back. */
  readonly claimsAtOnce: number

  now(): Promise<{ readonly at: Instant; readonly uncertainty: number }>
  /** Atomic per task: task and key, or neither. Any status is accepted, as it comes. */
  insert(insertions: readonly Insertion[], options: InsertOptions): Promise<readonly Inserted[]>
  claim(request: ClaimRequest): Promise<ClaimResult>
  /**
   * Each change is written, if its revision still holds, independently of the others. A change that takes a lapsed lease
   * (`leaseExpiresAt`) may also be a conflict because the call was held up.
   */
  commit(changes: readonly Change[]): Promise<readonly Committed[]>
  /** Compares the token, writes `lease.expiresAt` and `progress` only, leaves the revision. Succeeds after the lease's end if no other worker took the task. */
  renew(renewals: readonly Renewal[], now: Instant | null): Promise<readonly Renewed[]>
  remove(removals: readonly Removal[]): Promise<readonly Removed[]>

  /** With history. In the order asked for; null where there is none. */
  get(ids: readonly string[]): Promise<readonly (TaskRecord | null)[]>
  /** The key record that `key` has at `now`, dead or alive, and its task if that is still there. */
  find(key: string): Promise<{ readonly key: KeyRecord; readonly task: TaskRecord | null } | null>
  /**
   * Without history. A page ends early, with the task that makes it as heavy as `PAGE_WEIGHT` (core/page-weight.ts): `isLastPage` tells
   * whether there may be more.
   */
  list(query: Query, page: Page): Promise<TaskList>
  count(query: Query, limits: CountLimits): Promise<Counted>
  readonly documents: Documents

  /** A hint that work may be there, from this process or another; a claim decides. Returns a function that unsubscribes. */
  wake(listener: WakeListener): () => void
  close(): Promise<void>

  // What follows is optional.

  /** In the order asked for. Left out: every view of every queue is counted by `count`. */
  countQueues?(names: readonly string[], cap: number, now: Instant | null): Promise<readonly QueueCounts[]>
  /** Left out: exports and transfers carry no keys without a task. */
  readonly detachedKeys?: DetachedKeys
  /**
   * Writes that began before this instant have ended, as far as this store has watched since it was first asked: nothing
   * stamped earlier will still come to light. Left out: no write takes longer than some seconds.
   */
  visibleUntil?(): Promise<Instant>
  /** Facts about its health, for `doctor`. core/diagnosis.ts decides which of them are problems, and how to fix them. */
  examine?(): Promise<readonly Fact[]>
  /** Takes back what a process with a clock far ahead has written. Only where the store's time is the host's, and kept. */
  repairClock?(): Promise<ClockRepaired>
  /**
   * This store was brought back from a backup, and work goes on in it: gives it a new identity, and raises the fences of all tasks that have
   * not ended by more than can have been claimed since. How many tasks there were.
   */
  acceptRestore?(): Promise<number>
  /** Where heartbeats can run beside the event loop; else the runtime sends them itself through `renew`. */
  keeper?(options: KeeperOptions): Keeper
}

export type { Change, Instant, KeyRecord, TaskRecord, TaskStatus }
