/** What a store must do, in prose and types. It keeps tasks; it never decides what happens to one. */
import type { Fact } from '../core/diagnosis.ts'
import type { KeyRecord } from '../core/idempotency.ts'
import type { Change, Instant, TaskRecord, TaskStatus } from '../core/task.ts'
import type { CountedView, ViewFilter } from '../core/views.ts'
import type { LeaseBoard } from './lease-board.ts'

/**
 * What not every store can do; each has a page in docs/stores.
 * - `exact-order`: a claim gives the very first tasks of the queue, not nearly the first.
 * - `transactions`: insert can join the caller's own transaction.
 * - `host-clock`: the store's time is this machine's; no estimate is needed.
 * - `durable`: what was acknowledged survives the end of the process.
 */
export type Capability = 'exact-order' | 'transactions' | 'host-clock' | 'durable'

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

export interface Want {
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

export interface Look {
  /** Claimed just now, exactly as machine.claim would; without history; in the order to run them. */
  readonly leased: readonly TaskRecord[]
  /** For the machine to decide about: running tasks whose lease has lapsed, pending ones that have expired. Without history. */
  readonly due: readonly TaskRecord[]
  /**
   * The next instant at which looking is worth while without a wake-up; null: none is known. Only meaningful when nothing is
   * left to lease; a look that leased something may say now, for the next one to find out.
   */
  readonly next: Instant | null
}

/** `conflict`: the revision (or the lease's end) was not the one expected; nothing was written. */
export type Committed = 'written' | 'conflict' | 'gone'

export interface Renewal {
  readonly id: string
  readonly token: string
  readonly leaseTtl: number
  /** JSON text to store as progress. */
  readonly progress?: string
}

/** `cancel`: still held, but somebody asked the task to stop. */
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

/** Keys that outlived their task: what a removal with `endKey: false` leaves until the key's own time is over. */
export interface Orphans {
  /** In an order of the store's own; `after` is the last key of the page before. Also keys whose time is over, until they are swept. */
  list(page: { readonly limit: number; readonly after?: string }): Promise<readonly KeyRecord[]>
  /**
   * As insert would, without the task: for keys from another store. False where a live key stands already, which is left
   * as it is. A task that is there under the key's id is its task: then the key is none of the orphans.
   */
  put(keys: readonly KeyRecord[], now: Instant | null): Promise<readonly boolean[]>
}

/** How many tasks a queue has in each view; scheduled ones without those that are retrying. */
export interface QueueCounts extends Readonly<Record<CountedView, number>> {
  /** Of these there may be more: counting stopped. */
  readonly capped: readonly CountedView[]
}

/**
 * Looks for people's eyes, where a table may be long: they pass no more than about `most` tasks, newest first, unless an index
 * leads to what is meant, and say so when they stopped.
 */
export interface Glance {
  /** As `list`, by id downwards. `stoppedAt`: not all were passed that may match; go on after this id. */
  list(
    query: Query,
    page: Omit<Page, 'order'>,
    most: number,
  ): Promise<{ readonly tasks: readonly TaskRecord[]; readonly stoppedAt: string | null }>
  /** As `count`, but may go on beyond the cap where that costs nothing. `capped`: there may be more. */
  count(query: Query, cap: number, most: number, now: Instant | null): Promise<Counted>
  /** In the order asked for. Numbers that cost nothing may be beyond the cap. */
  queues(names: readonly string[], cap: number, now: Instant | null): Promise<readonly QueueCounts[]>
}

export interface Counted {
  readonly count: number
  readonly capped: boolean
}

/** Keeps leases alive on a thread that a busy event loop cannot stop. What has started or ended it sees on the board. */
export interface Keeper {
  hold(leases: readonly HeldLease[]): void
  /** Renews soon, and writes this JSON text with it. */
  progress(slot: number, progress: string): void
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
  readonly board: LeaseBoard
  readonly leaseTtl: number
  readonly every: number
  /** `renewedAt` is monotonic: when the renewals that succeeded were sent. */
  report(results: readonly KeeperReport[], renewedAt: number): void
}

export interface KeeperReport {
  readonly slot: number
  readonly token: string
  readonly renewed: Renewed
}

export interface InsertOptions {
  /** The caller's own transaction, where the store has `transactions`: the insert takes effect when it commits. */
  readonly tx?: unknown
  readonly now: Instant | null
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
  claim(want: Want): Promise<Look>
  /** Each change is written, if its revision still holds, independently of the others. */
  commit(changes: readonly Change[]): Promise<readonly Committed[]>
  /** Compares the token, writes `lease.expiresAt` and `progress` only, leaves the revision. Succeeds after the lease's end if nobody took it. */
  renew(renewals: readonly Renewal[], now: Instant | null): Promise<readonly Renewed[]>
  remove(removals: readonly Removal[]): Promise<readonly Removed[]>

  /** With history. In the order asked for; null where there is none. */
  get(ids: readonly string[]): Promise<readonly (TaskRecord | null)[]>
  /** The key record that `key` has at `now`, dead or alive, and its task if that is still there. */
  find(key: string): Promise<{ readonly key: KeyRecord; readonly task: TaskRecord | null } | null>
  /** Without history. */
  list(query: Query, page: Page): Promise<readonly TaskRecord[]>
  /** Counts no further than `cap`. */
  count(query: Query, cap: number, now: Instant | null): Promise<number>
  /** Left out: `list` and `count` are as good. */
  readonly glance?: Glance
  readonly documents: Documents
  readonly orphans: Orphans

  /** A hint that work may be there, from this process or another; looking stays the truth. Returns the way to unsubscribe. */
  wake(listener: (queues: readonly string[] | null) => void): () => void
  /**
   * Writes that began before this instant have ended, as far as this store has watched since it was first asked: nothing
   * stamped earlier will still come to light. Left out: no write takes longer than some seconds.
   */
  settledUntil?(): Promise<Instant>
  /** Facts about its health, for `doctor`. core/diagnosis.ts says what is good or bad about them, and how to mend it. */
  examine?(): Promise<readonly Fact[]>
  /** Where heartbeats can run beside the event loop; else the runtime sends them itself through `renew`. */
  keeper?(options: KeeperOptions): Keeper
  close(): Promise<void>
}

export type { Change, Instant, KeyRecord, TaskRecord, TaskStatus }
