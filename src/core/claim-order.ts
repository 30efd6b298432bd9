/** The order in which the tasks of a queue are claimed: higher priority, earlier availableAt, lower id. */
import type { TaskRecord } from './task.ts'

/** Compares two tasks by the order in which a queue is claimed. */
export const claimOrder = (
  a: Pick<TaskRecord, 'priority' | 'availableAt' | 'id'>,
  b: Pick<TaskRecord, 'priority' | 'availableAt' | 'id'>,
): number => b.priority - a.priority || a.availableAt - b.availableAt || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0)
