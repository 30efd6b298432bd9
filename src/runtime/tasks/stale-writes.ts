/** Counts writes that were refused because their lease is no longer current. They are not moves. */
import { channel } from 'node:diagnostics_channel'
import { isHoldfastError } from '../../core/errors.ts'
import type { TaskRecord } from '../../core/task.ts'

const refused = channel('holdfast:stale-write')

/** Almost free without listeners. */
export const tellIfStale = (error: unknown, { id, type, queue }: TaskRecord): void => {
  if (refused.hasSubscribers && isHoldfastError(error, 'STALE_LEASE')) refused.publish({ task: { id, type, queue } })
}
