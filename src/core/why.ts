/** Why a task is not running, in one honest sentence: what the record, its queue, the workers and the clock can tell. */
import { formatInstant, formatRelative } from './instants.ts'
import { hasDeparted } from './moving.ts'
import type { SkippedSlot } from './schedule.ts'
import type { Task } from './snapshot.ts'
import type { Instant } from './task.ts'

export interface Reason {
  readonly reason:
    | 'running'
    | 'lease-lapsed'
    | 'cancel-requested'
    | 'completed'
    | 'dead'
    | 'cancelled'
    | 'expired'
    | 'archived'
    | 'moved'
    | 'past-expiry'
    | 'queue-paused'
    | 'sleeping'
    | 'in-backoff'
    | 'scheduled'
    | 'no-worker'
    | 'ready'
  readonly sentence: string
}

export interface Circumstances {
  readonly now: Instant
  readonly queuePaused: boolean
  /** Those that are alive. */
  readonly workers: readonly { readonly types: readonly string[]; readonly queues: readonly string[] }[]
}

type When = (at: Instant) => string

export const reasonOf = (task: Task, circumstances: Circumstances): Reason => {
  const { now } = circumstances
  const when: When = (at) => `${formatInstant(at)} (${formatRelative(at, now)})`
  switch (task.status) {
    case 'pending':
      return waiting(task, circumstances, when)
    case 'running':
      return running(task, when, now)
    case 'completed':
      return { reason: 'completed', sentence: `It is done: completed at ${when(task.completedAt!)}.` }
    case 'failed':
      return {
        reason: 'dead',
        sentence: `It is dead: attempt ${task.attempts} failed at ${when(task.completedAt!)}${errorOf(task)}, and it will not run again by itself.`,
      }
    case 'cancelled':
      return { reason: 'cancelled', sentence: `It was cancelled at ${when(task.completedAt!)}; retry brings it back.` }
    case 'expired':
      return {
        reason: 'expired',
        sentence: `It expired at ${when(task.expiredAt!)} before a worker claimed it; an expired task is not run again.`,
      }
    case 'archived': {
      if (hasDeparted(task)) {
        const { at, reason } = task.history.at(-1)!
        return { reason: 'moved', sentence: `It was ${reason} at ${when(at)}, and lives there.` }
      }
      const replayed = task.replayedAs === null ? '' : `, and it was replayed as ${task.replayedAs}`
      return { reason: 'archived', sentence: `It is archived; before that it was ${task.archivedFrom}${replayed}.` }
    }
  }
}

/** Why a slot of a schedule made no task. `runs`: the task in its way, as far as it is still there. */
export const skippedBecause = ({ slot, reason, taskId }: SkippedSlot, now: Instant, runs: Task | null): string => {
  const skipped = `Its slot at ${formatInstant(slot)} (${formatRelative(slot, now)}) was skipped`
  if (reason === 'missed') return `${skipped}: no worker was there to fire it in time.`
  const since = runs === null || runs.id !== taskId ? '' : `, and is ${runs.status} now`
  return `${skipped}: the run before${taskId === undefined ? '' : `, task ${taskId},`} had not ended${since}.`
}

const running = ({ lease, cancelRequestedAt }: Task, when: When, now: Instant): Reason => {
  const { workerId, expiresAt } = lease!
  if (now >= expiresAt) {
    return {
      reason: 'lease-lapsed',
      sentence: `Its worker ${workerId} has not renewed the lease, which lapsed at ${when(expiresAt)}; the next worker that looks takes it.`,
    }
  }
  const held = `${workerId} holds its lease until ${when(expiresAt)}`
  if (cancelRequestedAt === null) return { reason: 'running', sentence: `It is running: ${held}.` }
  return {
    reason: 'cancel-requested',
    sentence: `It is running and was asked to stop at ${when(cancelRequestedAt)}; ${held}.`,
  }
}

const waiting = (task: Task, { now, queuePaused, workers }: Circumstances, when: When): Reason => {
  const { availableAt, expiresAt, queue } = task
  if (task.isExpiredAt(now)) {
    return {
      reason: 'past-expiry',
      sentence: `It passed its expiry at ${when(expiresAt!)} unclaimed; the next worker that looks marks it expired.`,
    }
  }
  if (availableAt > now) {
    const never = expiresAt !== null && expiresAt <= availableAt ? ` It will expire first, at ${when(expiresAt)}.` : ''
    const paused = queuePaused ? ` Its queue '${queue}' is paused, too.` : ''
    const { reason, sentence } = later(task, when)
    return { reason, sentence: `${sentence}${never}${paused}` }
  }
  if (queuePaused)
    return { reason: 'queue-paused', sentence: `Its queue '${queue}' is paused; it waits since ${when(availableAt)}.` }
  return ready(task, workers, when(availableAt))
}

/** Workers who drive tasks by hand do not register: hence "registered". */
const ready = ({ queue, type }: Task, workers: Circumstances['workers'], since: string): Reason => {
  const handling = workers.filter(({ types }) => types.includes(type))
  const able = handling.filter(({ queues }) => queues.includes(queue)).length
  if (able > 0) {
    const who = able === 1 ? 'one live worker serves' : `${able} live workers serve`
    return {
      reason: 'ready',
      sentence: `It is ready since ${since}, and ${who} queue '${queue}' with a handler for '${type}': it waits for its turn.`,
    }
  }
  const missing =
    workers.length === 0
      ? 'no live worker is registered'
      : handling.length === 0
        ? `no live worker handles '${type}' (${workers.length} registered)`
        : `no live worker that handles '${type}' serves queue '${queue}' (${handling.length} registered elsewhere)`
  return { reason: 'no-worker', sentence: `It is ready since ${since}, but ${missing}.` }
}

const later = (task: Task, when: When): Reason => {
  const due = when(task.availableAt)
  const last = task.history.at(-1)?.move
  if (last === 'reschedule')
    return {
      reason: 'sleeping',
      sentence: `Its handler put it to sleep until ${due} (reschedule ${task.rescheduleCount}).`,
    }
  if (task.retryCount > 0 && last !== 'submit') {
    return {
      reason: 'in-backoff',
      sentence: `It is in backoff after attempt ${task.attempts}${errorOf(task)}; retry ${task.retryCount} of ${task.maxRetries ?? 'unlimited'} is due at ${due}.`,
    }
  }
  return { reason: 'scheduled', sentence: `It is scheduled for ${due}.` }
}

const errorOf = ({ lastError }: Task): string =>
  lastError === null ? '' : ` with ${lastError.name}: ${lastError.message.split('\n', 1)[0]}`
