/** Collects the facts about why a task is not running. core/observe/why.ts draws the conclusion. */

import { endOf } from '../../core/flow/pause.ts'
import { Task } from '../../core/observe/task-view.ts'
import { handles, type Reason, reasonOf } from '../../core/observe/why.ts'
import { isDeleted, type SkippedSlot } from '../../core/schedules/schedule.ts'
import { SCHEDULE } from '../../core/storage/document-names.ts'
import { checkId } from '../../core/submission.ts'
import type { Instant } from '../../core/task.ts'
import { formatInstant, formatRelative } from '../../core/values/instants.ts'
import { heldBack } from '../queues/held-back.ts'
import type { Queues } from '../queues/queues.ts'
import { readSchedule } from '../schedules/slot-runner.ts'
import type { Session } from '../session.ts'
import { type Count, countTasks } from '../tasks/inspect.ts'
import { read } from '../tasks/settle.ts'
import { liveWorkers, type WorkerInfo } from '../worker/registration.ts'

/** The answer of `why`: a sentence, and the facts behind it. */
export interface Explanation extends Reason {
  /** The task at that moment. */
  readonly task: Task
  /** The store's time. */
  readonly now: Instant
  /** Its whole queue is paused. */
  readonly queuePaused: boolean
  /** Counted up to 10,000. */
  readonly queueReady: Count
  /** Counted up to 10,000. */
  readonly queueRunning: Count
  /** The live workers that serve its queue and handle its type. */
  readonly workers: readonly WorkerInfo[]
  /** The last slot that its schedule skipped because this task had not ended; null if there is none. */
  readonly skippedSlot: SkippedSlot | null
}

/** Enough to tell "a few" from "a flood", cheap on every store. */
const CAP = 10_000

export const explain = async (session: Session, queues: Queues, id: string): Promise<Explanation> => {
  const task = new Task(await read(session, checkId(id)))
  const { queue, type } = task
  const [{ at: now }, paused, live, queueReady, queueRunning, skippedSlot] = await Promise.all([
    session.store.now(),
    queues.refresh(),
    liveWorkers(session),
    countTasks(session, { queue, status: 'ready' }, { cap: CAP, maxScanned: CAP * 5 }),
    countTasks(session, { queue, status: 'running' }, { cap: CAP }),
    skippedFor(session, task),
  ])
  const queuePaused = paused.has(queue)
  const workers = live.filter((worker) => handles(worker, type) && worker.queues.includes(queue))
  const pausedUntil = queues.pausedUntil(queue)
  const pause = task.group === null ? undefined : queues.limits.pausedGroups(queue).get(task.group)
  const groupPaused = pause === undefined ? null : { until: endOf(pause) }
  const when = (at: Instant): string => `${formatInstant(at)} (${formatRelative(at, now)})`
  const limited = task.status === 'pending' ? await heldBack(session, queues, task, when) : null
  const reason = reasonOf(task, { now, queuePaused, pausedUntil, groupPaused, heldBack: limited, workers: live })
  return { ...reason, task, now, queuePaused, queueReady, queueRunning, workers, skippedSlot }
}

const skippedFor = async ({ store }: Session, { id, scheduleId }: Task): Promise<SkippedSlot | null> => {
  const document = scheduleId === null ? null : await store.documents.get(SCHEDULE + scheduleId)
  const kept = document === null ? null : readSchedule(document)
  const skipped = kept === null || isDeleted(kept) ? null : kept.lastSkipped
  return skipped?.taskId === id ? skipped : null
}
