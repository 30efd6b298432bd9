/** Writes that were refused because their lease is not the current one: no moves, but somebody may want to count them. */
import { channel } from 'node:diagnostics_channel'
import { isHoldfastError } from '../core/errors.ts'
import type { TaskRecord } from '../core/task.ts'

const refused = channel('holdfast:stale-write')

/** Costs next to nothing while nobody listens. */
export const tellIfStale = (error: unknown, { id, type, queue }: TaskRecord): void => {
  if (refused.hasSubscribers && isHoldfastError(error, 'STALE_LEASE')) refused.publish({ task: { id, type, queue } })
}
