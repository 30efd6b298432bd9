/**
 * How the engine finds tasks that are due. A hint says that a task may need attention from an instant on; the task's record
 * decides. S3 keeps hints as keys and wakes idle processes through one object. NATS keeps them as messages.
 */
import type { Instant } from '../../../core/task.ts'
import type { ClaimRequest, WakeListener } from '../../store.ts'
import type { Retry } from '../access/retry.ts'
import type { Hint } from '../records/hint-names.ts'
import type { Contention } from './contention.ts'
import type { HintCache } from './hint-cache.ts'

export interface Hints {
  /** The longest key of a bundle in bytes. Left out: one hint for several tasks is not cheaper than one hint each. */
  readonly longestBundle?: number | undefined
  /** Left out: changes to documents are not announced, so every list of documents is read. */
  readonly documentChanges?: DocumentChanges
  /** Durable when this resolves. `wakes` false: the hint is only a record, and no worker needs to hear of it. */
  announce(hint: string, wakes?: boolean): Promise<void>
  /** The task waits again under a hint that is still there. */
  reannounce(hint: string): void
  /** Surveys stop offering this hint. It may stay in the store until the index of ended tasks has its task. */
  retire(hint: string): void
  /** Deletes hints in the background. What a crash leaves, a later survey finds and withdraws. */
  withdraw(hints: readonly string[]): void
  isWithdrawn(hint: string): boolean
  /** The hints of one queue that a claim should look at. `turns`: from group to group. */
  survey(request: ClaimRequest, now: Instant, turns?: SurveyTurns): Promise<Survey>
  /** Every hint of a queue (null: of all queues), in pages. A task may have more than one. */
  pages(queue: string | null): AsyncIterable<readonly Hint[]>
  /** A claim of this process leased something: there is work. */
  claimed(): void
  /** Calls the listener when another process announces work. null: any queue may have work. */
  listen(listener: WakeListener): () => void
  close(): Promise<void>
}

/** Groups are named by their hashes, as in hints. */
export interface SurveyTurns {
  /** Begin behind this group; null: anywhere. */
  readonly after: string | null
  /** How many tasks of one group the claim can lease. */
  readonly mostEach: number
  /** The claim leases nothing of this group. */
  isPassed(group: string): boolean
}

export interface Survey {
  /** Worth an attempt to lease, in claim order. */
  readonly ready: readonly Hint[]
  /** Expired, or with a lease that may have lapsed. */
  readonly overdue: readonly Hint[]
  /** Hints that cannot be leased here and whose tasks this process has not read lately. */
  readonly unknown: readonly Hint[]
  /** The next instant at which a claim is worth while. */
  readonly next: Instant | null
  /** With turns: there are groups that the survey did not look at. The last one that it did look at, by its hash. */
  readonly cutAt?: string
  /** With turns: there are more hints of the groups that it looked at. */
  readonly hasMore?: boolean
  /** The claim is trying this ready hint. */
  tried?(hint: Hint): void
  /** Other processes had already taken many of the ready hints: do not offer them again from memory. */
  outdated?(): void
}

/** How a process learns that others changed watched documents. */
export interface DocumentChanges {
  announce(): void
  /** Stays the same while nothing changes. null: unknown at the moment. */
  snapshot(): string | null
}

/** What the engine shares with an implementation of Hints. */
export interface HintContext {
  readonly retry: Retry
  readonly cache: HintCache
  readonly contention: Contention
  /** This process is trying the hint, has withdrawn it, or knows that its task has ended. */
  isTaken(hint: string): boolean
}
