/** Why a task is not running, in one honest sentence: only what the record, its queue and the clock can tell. */
import type { Instant, Task } from '../index.ts'
import { instant, printable, relative } from './render.ts'

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
    | 'past-expiry'
    | 'queue-paused'
    | 'sleeping'
    | 'in-backoff'
    | 'scheduled'
    | 'ready'
  readonly sentence: string
}

export interface Circumstances {
  readonly now: Instant
  readonly queuePaused: boolean
}

export const reasonOf = (task: Task, { now, queuePaused }: Circumstances): Reason => {
  const { reason, sentence } = decide(task, queuePaused, (at) => `${instant(at)} (${relative(at, now)})`, now)
  return { reason, sentence: printable(sentence) }
}

const decide = (task: Task, queuePaused: boolean, when: (at: Instant) => string, now: Instant): Reason => {
  switch (task.status) {
    case 'pending':
      return waiting(task, queuePaused, when, now)
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
    case 'archived':
      return { reason: 'archived', sentence: `It is archived; before that it was ${task.archivedFrom}.` }
  }
}

const running = ({ lease, cancelRequestedAt }: Task, when: (at: Instant) => string, now: Instant): Reason => {
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

const waiting = (task: Task, queuePaused: boolean, when: (at: Instant) => string, now: Instant): Reason => {
  const { availableAt, expiresAt, queue, type } = task
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
  return {
    reason: 'ready',
    sentence: `It is ready since ${when(availableAt)}, and nothing in the store holds it back: either the workers are busy, or no live worker serves queue '${queue}' with a handler for '${type}'.`,
  }
}

const later = (task: Task, when: (at: Instant) => string): Reason => {
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
