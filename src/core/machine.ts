/** Every decision about a task: one pure function for each move of the table in moves.ts. No clock, no dice, no I/O: now and random are given. */
import { HoldfastError } from './errors.ts'
import { describeError } from './failure.ts'
import { type Actor, type EntryFacts, type MoveName, move } from './moves.ts'
import { hasDeparted } from './moving.ts'
import type { Payload } from './payload.ts'
import { backoff } from './retry.ts'
import type { Change, ChangeSet, Holder, Instant, Lease, TaskError, TaskRecord, TaskStatus } from './task.ts'
import { isTerminal, TERMINAL_STATUSES } from './task.ts'

export { type Actor, hasOp, MOVES, type MoveName } from './moves.ts'

/** What every move to pending clears; lastError stays. */
const TO_PENDING = { lease: null, completedAt: null, cancelRequestedAt: null, progress: null } as const

// ── claim ────────────────────────────────────────────────────────────────────────────────────────────────────────

export interface ClaimFacts {
  readonly token: string
  readonly workerId: string
  readonly leaseTtl: number
  readonly now: Instant
}

/** The one move that a SQL store performs itself; a conformance case pins it to this function, field for field. */
export const claim = (task: TaskRecord, { token, workerId, leaseTtl, now }: ClaimFacts): Change => {
  if (task.status === 'running') throw ended(task, 'TASK_ALREADY_CLAIMED')
  if (task.status !== 'pending') throw ended(task)
  if (isExpiredAt(task, now)) throw ended(task, 'TASK_EXPIRED')
  if (now < task.availableAt) throw ended(task, 'TASK_NOT_AVAILABLE')
  const lease: Lease = { token, workerId, claimedAt: now, expiresAt: now + leaseTtl }
  return move(
    task,
    'claim',
    'running',
    { now, by: workerId, op: token },
    { lease, attempts: task.attempts + 1, startedAt: now },
  )
}

export const isExpiredAt = (task: Pick<TaskRecord, 'expiresAt'>, now: Instant): boolean =>
  task.expiresAt !== null && now >= task.expiresAt

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

const holderActor = (lease: Lease, now: Instant): Actor => ({ now, by: lease.workerId, op: lease.token })

export const complete = (task: TaskRecord, holder: Holder, output: Payload, now: Instant): Change => {
  const lease = holding(task, holder)
  return move(task, 'complete', 'completed', holderActor(lease, now), {
    output: output.text,
    outputEncoding: output.encoding,
    lease: null,
    completedAt: now,
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
  })
}

export const timeOut = (task: TaskRecord, holder: Holder, message: string, now: Instant, random: number): Change => {
  const lease = holding(task, holder)
  const error: TaskError = { name: 'TimeoutError', message, at: now, attempt: task.attempts }
  return endAttempt(task, 'time-out', holderActor(lease, now), error, { permanent: false, random })
}

/** A lapsed lease, taken by whoever looks. The change holds only while the lease still ends when it was seen to. */
export const loseLease = (task: TaskRecord, by: string, now: Instant, random: number): Change => {
  const { lease } = task
  if (task.status !== 'running' || lease === null || now < lease.expiresAt) {
    throw new HoldfastError('INTERNAL', `task ${task.id} has no lapsed lease`, { id: task.id })
  }
  const error: TaskError = { name: 'LeaseExpired', message: 'lease expired', at: now, attempt: task.attempts }
  const actor = { now, by, op: lease.token }
  return {
    ...endAttempt(task, 'lose-lease', actor, error, { permanent: false, random }),
    leaseExpiresAt: lease.expiresAt,
  }
}

/** An attempt that did not succeed ends in one of three ways. Only this function chooses. */
const endAttempt = (
  task: TaskRecord,
  name: 'fail' | 'lose-lease' | 'time-out' | 'retry',
  actor: Actor,
  lastError: TaskError,
  { permanent, random }: { permanent: boolean; random: number | null },
): Change => {
  const { now } = actor
  // The cut may halve a character, which not every store can keep.
  const facts = { error: lastError.message.slice(0, 200).toWellFormed() }
  if (task.cancelRequestedAt !== null) return cancelRun(task, name, actor, { lastError }, facts)
  if (permanent || !hasRetriesLeft(task)) {
    return move(task, name, 'failed', actor, { lease: null, completedAt: now, lastError }, facts)
  }
  const availableAt = random === null ? now : now + backoff(task.retryPolicy, task.retryCount, random)
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

const hasRetriesLeft = (task: TaskRecord): boolean => task.maxRetries === null || task.retryCount < task.maxRetries

const cancelRun = (
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
    return move(task, 'reschedule', 'failed', actor, { lease: null, completedAt: now, lastError }, { error: message })
  }
  const count = task.rescheduleCount + 1
  const availableAt = now + delay
  const expiresAt = task.expiresAt === null ? null : task.expiresAt + extendExpiration
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

/** By hand on any pending task; else only once `expiresAt` has passed. */
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

/** What is to be done about a task that a look found due: take its lapsed lease, mark it expired, or (null) nothing yet. */
export const overdue = (task: TaskRecord, actor: Actor, random: number): Change | null => {
  if (task.status === 'running' && task.lease !== null && actor.now >= task.lease.expiresAt) {
    return loseLease(task, actor.by, actor.now, random)
  }
  if (task.status === 'pending' && isExpiredAt(task, actor.now)) return expire(task, actor)
  return null
}

// ── moves by people ──────────────────────────────────────────────────────────────────────────────────────────────

/** null: it is cancelled, or asked to stop, already. */
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
  if (!hasRetriesLeft(task)) {
    throw new HoldfastError(
      'MAX_ATTEMPTS_REACHED',
      `task ${task.id} has used its ${task.maxRetries} retries; replay gives it a new budget`,
      { id: task.id, maxRetries: task.maxRetries },
    )
  }
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

/** Back from the dead letters with a new budget. `expiresAt` is cleared unless given anew. */
export const replay = (task: TaskRecord, actor: Actor, expiresAt: Instant | null = null): Change => {
  if (task.status !== 'failed') {
    throw new HoldfastError('CANNOT_REPLAY', `task ${task.id} is ${task.status}; only a failed task can be replayed`, {
      id: task.id,
      status: task.status,
    })
  }
  const count = task.replayCount + 1
  const fresh = { availableAt: actor.now, expiresAt, retryCount: 0, rescheduleCount: 0, replayCount: count }
  return move(
    task,
    'replay',
    'pending',
    actor,
    { ...TO_PENDING, ...fresh },
    { availableAt: actor.now, count, ...(expiresAt === null ? null : { expiresAt }) },
  )
}

/** null: it is archived already. `replayedAs` links a task that was replayed as a new one. */
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

/** Throws TASK_NOT_TERMINAL: only what has ended can be removed or archived. */
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

/** The error that says which status stood in the way. */
export const ended = (
  task: TaskRecord,
  code: (typeof ENDED)[TaskStatus] | 'TASK_NOT_AVAILABLE' | 'WRONG_WORKER' = ENDED[task.status],
): HoldfastError => {
  const held = task.lease === null ? '' : `, held by ${task.lease.workerId}`
  const due = code === 'TASK_NOT_AVAILABLE' ? `, due at ${new Date(task.availableAt).toISOString()}` : ''
  return new HoldfastError(code, `task ${task.id} is ${task.status}${held}${due}`, { id: task.id, status: task.status })
}
