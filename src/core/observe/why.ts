/** Explains in one sentence why a task is not running, from the record, its queue, the workers and the clock. */

import type { SkippedSlot } from '../schedules/schedule.ts'
import type { ErrorFacts, Instant } from '../task.ts'
import { hasDeparted } from '../transfer/transfer.ts'
import { errorLine } from '../values/error-line.ts'
import { formatInstant, formatRelative } from '../values/instants.ts'
import type { Task } from './task-view.ts'

/** Why a task is where it is: a code and a sentence. */
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
    | 'group-paused'
    | 'held-back'
    | 'sleeping'
    | 'waiting-for-signal'
    | 'in-backoff'
    | 'scheduled'
    | 'no-worker'
    | 'workers-stuck'
    | 'ready'
  readonly sentence: string
}

/** What is known about the surroundings of a task: its queue, its workers, its limits. */
export interface Circumstances {
  readonly now: Instant
  readonly queuePaused: boolean
  /** null: the pause must be resumed. */
  readonly pausedUntil?: Instant | null
  /** The group of the task is paused; until null it must be resumed. */
  readonly groupPaused?: { readonly until: Instant | null } | null
  /** The limit that holds it back, in words; null: none. */
  readonly heldBack?: string | null
  /** Live workers only. */
  readonly workers: readonly LiveWorker[]
}

interface LiveWorker {
  readonly types: readonly string[]
  readonly queues: readonly string[]
  readonly id?: string
  /** false: as many of its handlers are stuck as it has slots. */
  readonly claiming?: boolean
  readonly stuck?: { readonly tasks: readonly { readonly id: string; readonly attempt: number }[] }
}

type When = (at: Instant) => string

/** Why the task is not running, from its record and its circumstances. */
export const reasonOf = (task: Task, circumstances: Circumstances): Reason => {
  const { reason, sentence } = ownReason(task, circumstances)
  return { reason, sentence: `${sentence}${stuckRuns(task, circumstances.workers)}` }
}

/** Runs whose outcome is written or whose lease is lost, but whose code may still be running. */
const stuckRuns = (task: Task, workers: readonly LiveWorker[]): string =>
  workers
    .flatMap(({ id, stuck }) =>
      (stuck?.tasks ?? [])
        .filter((one) => one.id === task.id)
        .map(({ attempt }) => ` The handler of attempt ${attempt} is stuck in worker ${id}: it did not stop.`),
    )
    .join('')

/** For a task that has run: it expired in its backoff or in a durable sleep. */
const runsBefore = ({ attempts }: Task): string =>
  attempts === 0 ? '' : ` again, after ${attempts === 1 ? '1 run' : `${attempts} runs`}`

const ownReason = (task: Task, circumstances: Circumstances): Reason => {
  const { now } = circumstances
  const when: When = (at) => `${formatInstant(at)} (${formatRelative(at, now)})`
  switch (task.status) {
    case 'pending':
      return waiting(task, circumstances, when)
    case 'running':
      return running(task, when, now)
    case 'completed':
      return { reason: 'completed', sentence: `It completed at ${when(task.completedAt!)}.` }
    case 'failed':
      return {
        reason: 'dead',
        sentence: `It is dead: attempt ${task.attempts} failed at ${when(task.completedAt!)}${errorOf(task)}, and it will not run again on its own.`,
      }
    case 'cancelled':
      return { reason: 'cancelled', sentence: `It was cancelled at ${when(task.completedAt!)}; retry runs it again.` }
    case 'expired':
      return {
        reason: 'expired',
        sentence: `It expired at ${when(task.expiredAt!)} before a worker claimed it${runsBefore(task)}; an expired task never runs.`,
      }
    case 'archived': {
      if (hasDeparted(task)) {
        const { at, reason } = task.history.at(-1)!
        return { reason: 'moved', sentence: `It was ${reason} at ${when(at)}; it continues there.` }
      }
      const replayed = task.replayedAs === null ? '' : `, and it was replayed as ${task.replayedAs}`
      return { reason: 'archived', sentence: `It is archived; before that it was ${task.archivedFrom}${replayed}.` }
    }
  }
}

/** Stands for all types in the registration of a worker. No type has this name. */
export const ANY_TYPE = '*'

export const handles = ({ types }: { readonly types: readonly string[] }, type: string): boolean =>
  types.includes(type) || types.includes(ANY_TYPE)

/** Why a slot of a schedule created no task. `runs`: the task that blocked it, if it still exists. */
export const skippedBecause = ({ slot, reason, taskId }: SkippedSlot, now: Instant, runs: Task | null): string => {
  const skipped = `Its slot at ${formatInstant(slot)} (${formatRelative(slot, now)}) was skipped`
  if (reason === 'missed') return `${skipped}: no worker was running to fire it in time.`
  const since = runs === null || runs.id !== taskId ? '' : `, and is ${runs.status} now`
  return `${skipped}: the previous run${taskId === undefined ? '' : `, task ${taskId},`} had not ended${since}.`
}

const running = ({ lease, cancelRequestedAt }: Task, when: When, now: Instant): Reason => {
  const { workerId, expiresAt } = lease!
  if (now >= expiresAt) {
    return {
      reason: 'lease-lapsed',
      sentence: `Its worker ${workerId} has not renewed the lease, which lapsed at ${when(expiresAt)}; the next worker that polls takes it.`,
    }
  }
  const held = `${workerId} holds its lease until ${when(expiresAt)}`
  if (cancelRequestedAt === null) return { reason: 'running', sentence: `It is running: ${held}.` }
  return {
    reason: 'cancel-requested',
    sentence: `It is running, and its cancellation was requested at ${when(cancelRequestedAt)}; ${held}.`,
  }
}

const waiting = (task: Task, circumstances: Circumstances, when: When): Reason => {
  const { now, queuePaused, pausedUntil = null, groupPaused = null, heldBack = null, workers } = circumstances
  const { availableAt, expiresAt, queue } = task
  if (task.isExpiredAt(now)) {
    return {
      reason: 'past-expiry',
      sentence: `It passed its expiry at ${when(expiresAt!)} while it waited${runsBefore(task)}; the next worker that polls marks it expired.`,
    }
  }
  if (availableAt > now) {
    const never = expiresAt !== null && expiresAt <= availableAt ? ` It will expire first, at ${when(expiresAt)}.` : ''
    const paused = queuePaused ? ` Its queue '${queue}' is also paused.` : ''
    const held = groupPaused === null ? '' : ` Its group '${task.group}' is also paused.`
    const { reason, sentence } = later(task, when)
    return { reason, sentence: `${sentence}${never}${paused}${held}` }
  }
  if (queuePaused)
    return {
      reason: 'queue-paused',
      sentence: `Its queue '${queue}' is paused${pausedUntil === null ? '' : ` until ${when(pausedUntil)}`}; it has been waiting since ${when(availableAt)}.`,
    }
  if (groupPaused !== null)
    return {
      reason: 'group-paused',
      sentence: `Its group '${task.group}' is paused in queue '${queue}'${groupPaused.until === null ? '' : ` until ${when(groupPaused.until)}`}; it has been waiting since ${when(availableAt)}.`,
    }
  const found = ready(task, workers, when(availableAt))
  if (heldBack === null) return found
  if (found.reason !== 'ready') return { ...found, sentence: `${found.sentence} Also, ${heldBack}.` }
  return { reason: 'held-back', sentence: `It has been ready since ${when(availableAt)}, but ${heldBack}.` }
}

/** Workers that claim tasks by hand do not register: hence "registered". */
const ready = ({ queue, type }: Task, workers: Circumstances['workers'], since: string): Reason => {
  const handling = workers.filter((worker) => handles(worker, type))
  const serving = handling.filter(({ queues }) => queues.includes(queue))
  const able = serving.filter(({ claiming }) => claiming !== false).length
  if (able === 0 && serving.length > 0) {
    const who =
      serving.length === 1
        ? `the one live worker that serves it, ${serving[0]!.id}, has`
        : `all ${serving.length} live workers that serve it have`
    return {
      reason: 'workers-stuck',
      sentence: `It has been ready since ${since}, but ${who} stopped claiming: as many handlers are stuck as there are slots. Restart ${serving.length === 1 ? 'it' : 'them'}.`,
    }
  }
  if (able > 0) {
    const who = able === 1 ? 'one live worker serves' : `${able} live workers serve`
    return {
      reason: 'ready',
      sentence: `It has been ready since ${since}, and ${who} queue '${queue}' with a handler for '${type}': it is waiting its turn.`,
    }
  }
  const missing =
    workers.length === 0
      ? 'no live worker is registered'
      : handling.length === 0
        ? `no live worker handles '${type}' (${workers.length} registered)`
        : `no live worker that handles '${type}' serves queue '${queue}' (${handling.length} registered elsewhere)`
  return { reason: 'no-worker', sentence: `It has been ready since ${since}, but ${missing}.` }
}

/** The name of a signal may be misspelt. */
const untaken = ({ signals }: Task): string => {
  if (signals.length === 0) return ''
  const names = [...new Set(signals.map(({ name }) => name))]
  const named = names.slice(0, MOST_NAMED).map((name) => `'${name}'`)
  const more = names.length > MOST_NAMED ? ', …' : ''
  const have = signals.length === 1 ? '1 signal has' : `${signals.length} signals have`
  return ` ${have} come that no step has taken: ${named.join(', ')}${more}.`
}

const MOST_NAMED = 3

const parked = (task: Task, when: When): Reason => {
  const { step, kind, signal, signals, until } = task.parked!
  const also = (signals ?? []).filter((name) => name !== signal).map((name) => `'${name}'`)
  const orElse = also.length === 0 ? '' : `, or for signal ${also.join(' or ')}`
  if (kind === 'sleep')
    return { reason: 'sleeping', sentence: `It sleeps in step '${step}' until ${when(until!)}${orElse}.` }
  const end = until === null ? ', without a limit' : ` until ${when(until)}`
  const where = signal === step ? '' : ` in step '${step}'`
  return {
    reason: 'waiting-for-signal',
    sentence: `It waits for signal '${signal}'${where}${orElse}${end}.${untaken(task)}`,
  }
}

const later = (task: Task, when: When): Reason => {
  if (task.parked !== null) return parked(task, when)
  const due = when(task.availableAt)
  const last = task.history.at(-1)?.move
  if (last === 'reschedule')
    return {
      reason: 'sleeping',
      sentence: `Its handler rescheduled it for ${due} (reschedule ${task.rescheduleCount}).`,
    }
  if (task.retryCount > 0 && last !== 'submit') {
    return {
      reason: 'in-backoff',
      sentence: `It is in backoff after attempt ${task.attempts}${errorOf(task)}; retry ${task.retryCount} of ${task.maxRetries ?? 'unlimited'} is due at ${due}.`,
    }
  }
  return { reason: 'scheduled', sentence: `It is scheduled for ${due}.` }
}

const errorOf = ({ lastError }: Task): string => (lastError === null ? '' : ` with ${whatOf(lastError)}`)

/** The first line of the message; the task has the causes. */
const whatOf = ({ name, message, cause, ...error }: ErrorFacts): string => {
  const own = { name, message: message.split('\n', 1)[0]!, ...(error.code === undefined ? null : { code: error.code }) }
  // A sentence goes on after it.
  return errorLine(cause === undefined ? own : { ...own, cause }).replace(/\.$/, '')
}
