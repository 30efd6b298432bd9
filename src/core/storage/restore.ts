/** A store that was brought back from a backup: how it is recognised, and how work goes on in it. */
import type { TaskRecord, TaskStatus } from '../task.ts'

/**
 * Added to the claims of every task that may run again when a restored store is accepted. A worker that held a lease after the backup was taken
 * was given fences that the backup does not know; no task is claimed as often as this in between.
 */
export const FENCE_LEAP = 1_000_000

/** Tasks in these statuses, and those archived from them, may run again: a dead letter was perhaps replayed and claimed after the backup. */
export const MAY_RUN_AGAIN: readonly TaskStatus[] = ['pending', 'running', 'failed', 'cancelled']

/** The task under a fence that was never handed out; null: it does not run again. */
export const raised = <Task extends Pick<TaskRecord, 'status' | 'archivedFrom' | 'attempts'>>(
  task: Task,
): Task | null =>
  MAY_RUN_AGAIN.includes(task.archivedFrom ?? task.status) ? { ...task, attempts: task.attempts + FENCE_LEAP } : null

/** Which store this is, and a count that grows while it is used: a smaller one is an older state of it. */
export interface StoreState {
  readonly identity: string | null
  readonly epoch: number
}

/** Why a process that has seen `before` may not go on with `found`; null: it may. */
export const replacedBy = (before: StoreState, found: StoreState): string | null => {
  if (found.identity !== before.identity) return 'is now another Holdfast store, or none'
  if (found.epoch < before.epoch) return 'was replaced by an older state of itself, such as a backup'
  return null
}
