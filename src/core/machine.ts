/** Every decision about a task: one pure function for each move in moves.ts. No clock, no randomness, no I/O: now and random are arguments. */

import { HoldfastError } from './errors.ts'
import { retryDelay } from './failure.ts'
import { deadlineOf, isExpiredAt, isOverdue } from './guards.ts'
import { type Actor, type EntryFacts, type MoveName, move } from './moves.ts'
import { backoff } from './retry.ts'
import type { Change, ChangeSet, Holder, Instant, Lease, TaskError, TaskRecord, TaskStatus } from './task.ts'
import { isTerminal, TERMINAL_STATUSES } from './task.ts'
import { hasDeparted } from './transfer/transfer.ts'
import { formatDuration } from './values/durations.ts'
import { describeError } from './values/error-facts.ts'
import { errorLine } from './values/error-line.ts'
import { atMostLast } from './values/instants.ts'
import type { Output } from './values/output.ts'

export { isExpiredAt } from './guards.ts'
export { type Actor, hasOp, isLegal, MOVES, type MoveName, RUN_ENDS } from './moves.ts'

/** The fields that every move to pending clears; lastError stays. */
export const TO_PENDING = { lease: null, completedAt: null, cancelRequestedAt: null, progress: null } as const

// ── claim ────────────────────────────────────────────────────────────────────────────────────────────────────────

export interface ClaimFacts {
  readonly token: string
  readonly workerId: string
  readonly leaseTtl: number
  readonly now: Instant
}

/** The only move that a SQL store performs itself; a conformance case compares it with this function field by field. */
export const claim = (task: TaskRecord, { token, workerId, leaseTtl, now }: ClaimFacts): Change => {
  if (task.status === 'running') throw ended(task, 'TASK_ALREADY_CLAIMED')
  if (task.status !== 'pending') throw ended(task)
  if (isExpiredAt(task, now)) throw ended(task, 'TASK_EXPIRED')
  if (now < task.availableAt) throw ended(task, 'TASK_NOT_AVAILABLE')
  const lease: Lease = { token, workerId, claimedAt: now, expiresAt: now + leaseTtl, ttl: leaseTtl }
  return move(
    task,
    'claim',
    'running',
    { now, by: workerId, op: token },
    { lease, attempts: task.attempts + 1, startedAt: now },
  )
}

// ── moves out of running ─────────────────────────────────────────────────────────────────────────────────────────

/** The lease, if `holder` has it. A token that is not the current one is stale whatever the status. */
export const holding = (task: TaskRecord, holder: Holder): Lease => {
  const { lease } = task
  if ('token' in holder) {
    if (task.status === 'running' && lease?.token === holder.token) return lease
    throw new HoldfastError('STALE_LEASE', `task ${task.id} is ${task.status}; this lease is not its current one`, {
      id: task.id,
      status: task.status,
    })
  }
  if (task.status === 'pending') throw ended(task, 'TASK_NOT_CLAIMED')
  if (task.status !== 'running' || lease === null) throw ended(task)
  if (lease.workerId !== holder.workerId) throw ended(task, 'WRONG_WORKER')
  return lease
}

/** No earlier than the claim: where the store's time is known less exactly, the holder's estimate may be behind the one of the claim. */
export const holderActor = (lease: Lease, now: Instant): Actor => ({
  now: Math.max(now, lease.claimedAt),
  by: lease.workerId,
  op: lease.token,
})

export const complete = (task: TaskRecord, holder: Holder, output: Output, now: Instant): Change => {
  const actor = holderActor(holding(task, holder), now)
  return move(task, 'complete', 'completed', actor, {
    output: output.text,
    outputEncoding: output.encoding,
    ...(output.error === undefined ? null : { outputError: output.error }),
    lease: null,
    completedAt: actor.now,
  })
}

export interface FailFacts {
  readonly error: unknown
  readonly permanent: boolean
  readonly now: Instant
  readonly random: number
}

export const fail = (task: TaskRecord, holder: Holder, { error, permanent, now, random }: FailFacts): Change => {
  const lease = holding(task, holder)
  return endAttempt(task, 'fail', holderActor(lease, now), describeError(error, now, task.attempts), {
    permanent,
    random,
    delay: retryDelay(error),
  })
}

export const timeOut = (task: TaskRecord, holder: Holder, now: Instant, random: number): Change => {
  const lease = holding(task, holder)
  const error: TaskError = { name: 'TimeoutError', message: timedOutText(task), at: now, attempt: task.attempts }
  return endAttempt(task, 'time-out', holderActor(lease, now), error, { permanent: false, random })
}

const timedOutText = ({ timeout }: TaskRecord): string => `timed out after ${formatDuration(timeout!)}`

/**
 * Any process may take a lapsed lease. The change is valid only while the end of the lease is the one that was read. A lease that
 * was renewed up to the deadline of its run counts as timed out.
 */
export const loseLease = (task: TaskRecord, by: string, now: Instant, random: number): Change => {
  const { lease } = task
  if (task.status !== 'running' || lease === null || now < lease.expiresAt) {
    throw new HoldfastError('INTERNAL', `task ${task.id} has no lapsed lease`, { id: task.id })
  }
  const actor = { now, by, op: lease.token }
  const deadline = deadlineOf(task)
  const isOverTime = deadline !== null && now >= deadline
  const error: TaskError = {
    ...(isOverTime
      ? { name: 'TimeoutError', message: timedOutText(task) }
      : { name: 'LeaseExpired', message: 'lease expired' }),
    at: now,
    attempt: task.attempts,
  }
  return {
    ...endAttempt(task, isOverTime ? 'time-out' : 'lose-lease', actor, error, { permanent: false, random }),
    leaseExpiresAt: lease.expiresAt,
  }
}

/** An attempt that did not succeed ends in one of three ways. Only this function chooses. */
const endAttempt = (
  task: TaskRecord,
  name: 'fail' | 'lose-lease' | 'time-out' | 'retry',
  actor: Actor,
  lastError: TaskError,
  { permanent, random, delay = null }: { permanent: boolean; random: number | null; delay?: number | null },
): Change => {
  const { now } = actor
  // Truncation may split a surrogate pair, which not every store can keep.
  const facts = { error: errorInHistory(lastError).slice(0, LONGEST_IN_HISTORY).toWellFormed() }
  if (task.cancelRequestedAt !== null) return cancelRun(task, name, actor, { lastError }, facts)
  if (permanent || !hasRetriesLeft(task)) {
    return move(task, name, 'failed', actor, { lease: null, completedAt: now, lastError }, facts)
  }
  const wait = delay ?? (random === null ? 0 : backoff(task.retryPolicy, task.retryCount, random))
  const availableAt = now + wait
  const count = task.retryCount + 1
  return move(
    task,
    name,
    'pending',
    actor,
    { ...TO_PENDING, availableAt, retryCount: count, lastError },
    { ...facts, availableAt, count },
  )
}

const LONGEST_IN_HISTORY = 200

/** The message and its causes, without the name, which lastError has. */
const errorInHistory = (error: TaskError): string => {
  const { cause, errors, code } = error
  return cause === undefined && errors === undefined && code === undefined
    ? error.message
    : errorLine(error).slice(error.message === '' ? 0 : error.name.length + 2)
}

const hasRetriesLeft = (task: TaskRecord): boolean => task.maxRetries === null || task.retryCount < task.maxRetries

const mustHaveRetriesLeft = (task: TaskRecord): void => {
  if (hasRetriesLeft(task)) return
  const fix = task.status === 'running' ? 'it goes on running' : 'replay gives it a new budget'
  throw new HoldfastError('MAX_ATTEMPTS_REACHED', `task ${task.id} has used its ${task.maxRetries} retries; ${fix}`, {
    id: task.id,
    maxRetries: task.maxRetries,
  })
}

export const cancelRun = (
  task: TaskRecord,
  name: MoveName,
  actor: Actor,
  set: ChangeSet = {},
  facts: EntryFacts = {},
): Change => move(task, name, 'cancelled', actor, { ...set, lease: null, completedAt: actor.now }, facts)

export interface RescheduleFacts {
  readonly delay: number
  readonly extendExpiration: number
  readonly now: Instant
}

export const reschedule = (
  task: TaskRecord,
  holder: Holder,
  { delay, extendExpiration, now }: RescheduleFacts,
): Change => {
  const actor = holderActor(holding(task, holder), now)
  if (task.cancelRequestedAt !== null) return cancelRun(task, 'reschedule', actor)
  if (task.maxReschedules !== null && task.rescheduleCount >= task.maxReschedules) {
    const message = `Max reschedules (${task.maxReschedules}) exceeded`
    const lastError: TaskError = { name: 'MaxReschedulesExceeded', message, at: now, attempt: task.attempts }
    return move(
      task,
      'reschedule',
      'failed',
      actor,
      { lease: null, completedAt: actor.now, lastError },
      { error: message },
    )
  }
  const count = task.rescheduleCount + 1
  const availableAt = atMostLast(now + delay)
  const expiresAt = task.expiresAt === null ? null : atMostLast(task.expiresAt + extendExpiration)
  const extended = extendExpiration > 0 && expiresAt !== null
  return move(
    task,
    'reschedule',
    'pending',
    actor,
    { ...TO_PENDING, availableAt, rescheduleCount: count, ...(extended ? { expiresAt } : null) },
    { availableAt, delay, count, ...(extended ? { expiresAt } : null) },
  )
}

export const release = (task: TaskRecord, holder: Holder, now: Instant): Change => {
  const actor = holderActor(holding(task, holder), now)
  if (task.cancelRequestedAt !== null) return cancelRun(task, 'release', actor)
  return move(task, 'release', 'pending', actor, TO_PENDING)
}

// ── expiry ───────────────────────────────────────────────────────────────────────────────────────────────────────

/** An operator may expire any pending task; otherwise only after `expiresAt`. */
export const expire = (task: TaskRecord, actor: Actor): Change => {
  if (task.status !== 'pending') {
    throw new HoldfastError('CANNOT_EXPIRE', `task ${task.id} is ${task.status}; only a pending task can expire`, {
      id: task.id,
      status: task.status,
    })
  }
  const { now } = actor
  return move(task, 'expire', 'expired', actor, { expiredAt: now, completedAt: now }, { expiredAt: now })
}

/** The change for a task that the store reported as overdue: take its lapsed lease, or mark it expired; null if neither applies yet. */
export const overdue = (task: TaskRecord, actor: Actor, random: number): Change | null => {
  if (!isOverdue(task, actor.now)) return null
  return task.status === 'running' ? loseLease(task, actor.by, actor.now, random) : expire(task, actor)
}

// ── moves by people ──────────────────────────────────────────────────────────────────────────────────────────────

/** null if it is already cancelled or asked to stop. */
export const cancel = (task: TaskRecord, actor: Actor, reason?: string): Change | null => {
  const facts = reason === undefined ? {} : { reason }
  if (task.status === 'pending') return move(task, 'cancel', 'cancelled', actor, { completedAt: actor.now }, facts)
  if (task.status === 'running') {
    if (task.cancelRequestedAt !== null) return null
    return move(task, 'request-cancel', 'running', actor, { cancelRequestedAt: actor.now }, facts)
  }
  if (task.status === 'cancelled') return null
  throw new HoldfastError('CANNOT_CANCEL', `task ${task.id} is ${task.status}`, { id: task.id, status: task.status })
}

export const retry = (task: TaskRecord, actor: Actor): Change => {
  const { now } = actor
  if (task.status === 'running') {
    // A run with a cancel request ends as cancelled and needs no retry; a retry must not kill any other run.
    if (task.cancelRequestedAt === null) mustHaveRetriesLeft(task)
    const error: TaskError = {
      name: 'RetriedByOperator',
      message: 'retried by operator',
      at: now,
      attempt: task.attempts,
    }
    return endAttempt(task, 'retry', actor, error, { permanent: false, random: null })
  }
  if (task.status === 'cancelled')
    return move(task, 'retry', 'pending', actor, { ...TO_PENDING, availableAt: now }, { availableAt: now })
  if (task.status !== 'failed') {
    const why = task.status === 'pending' ? 'pending: it will run by itself' : task.status
    throw new HoldfastError('CANNOT_RETRY', `task ${task.id} is ${why}`, { id: task.id, status: task.status })
  }
  mustHaveRetriesLeft(task)
  const count = task.retryCount + 1
  return move(
    task,
    'retry',
    'pending',
    actor,
    { ...TO_PENDING, availableAt: now, retryCount: count },
    { availableAt: now, count },
  )
}

export interface ReplayFacts {
  /** Default: it never expires. */
  readonly expiresAt?: Instant | null
  /** Forgets its steps and signals. */
  readonly fresh?: boolean
}

/** Runs a dead letter again with a new retry budget. Recorded steps stay, unless it is to be fresh. */
export const replay = (
  task: TaskRecord,
  actor: Actor,
  { expiresAt = null, fresh = false }: ReplayFacts = {},
): Change => {
  if (task.status !== 'failed') {
    throw new HoldfastError('CANNOT_REPLAY', `task ${task.id} is ${task.status}; only a failed task can be replayed`, {
      id: task.id,
      status: task.status,
    })
  }
  const count = task.replayCount + 1
  const renewed = { availableAt: actor.now, expiresAt, retryCount: 0, rescheduleCount: 0, replayCount: count }
  const forgotten = fresh ? { generation: task.generation + 1, hasJournal: false } : null
  return move(
    task,
    'replay',
    'pending',
    actor,
    { ...TO_PENDING, ...renewed, ...forgotten },
    { availableAt: actor.now, count, ...(expiresAt === null ? null : { expiresAt }) },
  )
}

/** null if it is already archived. `replayedAs` links the new task of a replay. */
export const archive = (task: TaskRecord, actor: Actor, replayedAs?: string): Change | null => {
  if (task.status === 'archived') return null
  mustBeTerminal(task)
  const link = replayedAs === undefined ? null : { replayedAs, replayCount: task.replayCount + 1 }
  return move(task, 'archive', 'archived', actor, { archivedFrom: task.status, ...link })
}

export const unarchive = (task: TaskRecord, actor: Actor): Change => {
  if (task.status !== 'archived' || task.archivedFrom === null) {
    throw new HoldfastError('CANNOT_UNARCHIVE', `task ${task.id} is ${task.status}, not archived`, {
      id: task.id,
      status: task.status,
    })
  }
  if (hasDeparted(task)) {
    throw new HoldfastError('CANNOT_UNARCHIVE', `task ${task.id} was ${task.history.at(-1)!.reason}: it lives there`, {
      id: task.id,
      status: task.status,
    })
  }
  return move(task, 'unarchive', task.archivedFrom, actor, { archivedFrom: null })
}

/** Throws TASK_NOT_TERMINAL unless the task has ended: only ended tasks can be removed or archived. */
export const mustBeTerminal = (task: TaskRecord): void => {
  if (isTerminal(task.status)) return
  throw new HoldfastError(
    'TASK_NOT_TERMINAL',
    `task ${task.id} is ${task.status}; it must be one of ${TERMINAL_STATUSES.join(', ')}`,
    { id: task.id, status: task.status },
  )
}

const ENDED = {
  completed: 'TASK_COMPLETED',
  failed: 'TASK_FAILED',
  cancelled: 'TASK_CANCELLED',
  expired: 'TASK_EXPIRED',
  archived: 'TASK_ARCHIVED',
  pending: 'TASK_NOT_CLAIMED',
  running: 'TASK_ALREADY_CLAIMED',
} as const

/** The error that names the status that prevents the move. */
export const ended = (
  task: TaskRecord,
  code: (typeof ENDED)[TaskStatus] | 'TASK_NOT_AVAILABLE' | 'WRONG_WORKER' = ENDED[task.status],
): HoldfastError => {
  const held = task.lease === null ? '' : `, held by ${task.lease.workerId}`
  const due = code === 'TASK_NOT_AVAILABLE' ? `, due at ${new Date(task.availableAt).toISOString()}` : ''
  return new HoldfastError(code, `task ${task.id} is ${task.status}${held}${due}`, { id: task.id, status: task.status })
}
