/** Whose turn it is in a queue: the higher priority, then who was due first, then who was submitted first. */
import type { TaskRecord } from './task.ts'

export const byTurn = (
  a: Pick<TaskRecord, 'priority' | 'availableAt' | 'id'>,
  b: Pick<TaskRecord, 'priority' | 'availableAt' | 'id'>,
): number => b.priority - a.priority || a.availableAt - b.availableAt || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0)
