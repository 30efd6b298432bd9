/** The conditions under which a store may write a change. Stores that cannot evaluate them on a server use these functions. */
import type { Change, Instant, TaskRecord } from './task.ts'

export const isExpiredAt = ({ expiresAt }: Pick<TaskRecord, 'expiresAt'>, instant: Instant): boolean =>
  expiresAt !== null && instant >= expiresAt

/** May be claimed. */
export const isReady = (task: TaskRecord, now: Instant): boolean =>
  task.status === 'pending' && task.availableAt <= now && !isExpiredAt(task, now)

/** Its lease has lapsed, or it has expired: a worker must move it. */
export const isOverdue = (task: TaskRecord, now: Instant): boolean =>
  task.status === 'running'
    ? task.lease !== null && task.lease.expiresAt <= now
    : task.status === 'pending' && isExpiredAt(task, now)

/** The change was decided on this revision; a change that takes a lapsed lease also compares the end of the lease. */
export const canCommit = (task: TaskRecord, { revision, leaseExpiresAt }: Change): boolean =>
  task.revision === revision && (leaseExpiresAt === undefined || task.lease?.expiresAt === leaseExpiresAt)

export interface LeaseRenewal {
  readonly token: string
  readonly leaseTtl: number
  /** The renewed lease ends no later than this. */
  readonly notAfter?: Instant
  /** JSON text to store; unchanged if omitted. */
  readonly progress?: string
}

/**
 * The latest end of a run, however often its lease is renewed: the claim plus its timeout (a store does not know when the
 * handler was called) plus one lease length, in which the holder can write the outcome itself. null: no limit.
 */
export const deadlineOf = ({ lease, timeout }: Pick<TaskRecord, 'lease' | 'timeout'>): Instant | null =>
  lease === null || timeout === null ? null : lease.claimedAt + timeout + lease.ttl

/** The task with its lease renewed; null if this lease is no longer the current one. Succeeds after the lease's end if it was not taken. */
export const renewed = (
  task: TaskRecord,
  { token, leaseTtl, notAfter = Number.POSITIVE_INFINITY, progress }: LeaseRenewal,
  now: Instant,
): TaskRecord | null => {
  if (task.status !== 'running' || task.lease?.token !== token) return null
  const lease = { ...task.lease, expiresAt: Math.min(now + leaseTtl, notAfter) }
  return { ...task, lease, progress: progress ?? task.progress }
}
