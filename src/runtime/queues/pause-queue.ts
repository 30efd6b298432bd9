/** Pauses a queue at the request of one of its tasks, for example after a rate limit (HTTP 429). */
import { pauseEnd, type RescheduleWish } from '../../core/failure.ts'
import type { TaskRecord } from '../../core/task.ts'
import type { Session } from '../session.ts'
import { Queues } from './queues.ts'

/** Call it before the task is rescheduled; otherwise another worker could claim the queue's next task in between. Never rejects. */
export const pauseQueueOf = async (
  session: Session,
  { id, queue, group }: TaskRecord,
  wish: RescheduleWish,
  queues = new Queues(session),
): Promise<void> => {
  try {
    const ofGroup = wish.pause === 'group'
    // A task without a group cannot pause one.
    if (ofGroup && group === null) return
    const pause = { until: pauseEnd(wish, session.time.now()), reason: `asked for by task ${id}` }
    await queues.pause(queue, { ...pause, ...(ofGroup ? { group: group! } : null) })
  } catch (error) {
    session.logger.warn(`cannot pause queue '${queue}': ${error instanceof Error ? error.message : error}`)
  }
}
