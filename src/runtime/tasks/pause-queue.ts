/** The pause of a queue that one of its tasks asks for, because a service told it to wait. */
import { pauseEnd, type RescheduleWish } from '../../core/failure.ts'
import type { TaskRecord } from '../../core/task.ts'
import type { Session } from '../session.ts'
import { Queues } from './queues.ts'

/** To be called before the task is rescheduled: else another worker could take the next task of the queue in between. Never rejects. */
export const pauseQueueOf = async (
  session: Session,
  { id, queue }: TaskRecord,
  wish: RescheduleWish,
  queues = new Queues(session),
): Promise<void> => {
  try {
    await queues.pause(queue, { until: pauseEnd(wish, session.time.now()), reason: `asked for by task ${id}` })
  } catch (error) {
    session.logger.warn(`cannot pause queue '${queue}': ${error instanceof Error ? error.message : error}`)
  }
}
