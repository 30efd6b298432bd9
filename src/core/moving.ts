/** What moving a task to another store means: when it may go, what stays behind, and what a copy found there tells. */
import { HoldfastError } from './errors.ts'
import { type KeyRecord, keyIsLive } from './idempotency.ts'
import { type Actor, move } from './moves.ts'
import type { Change, HistoryEntry, Instant, TaskRecord } from './task.ts'

/** On what stays behind: the address of the store where the task lives on. */
export const MOVED_TAG = 'moved'

const LONGEST_TAG = 256

export const movedTag = (to: string): string => to.slice(0, LONGEST_TAG).toWellFormed()

/** What stays behind of a task that lives on elsewhere. Needs the history: a tag alone may be the user's own. */
export const hasDeparted = ({ status, history }: Pick<TaskRecord, 'status' | 'history'>): boolean =>
  status === 'archived' && history.at(-1)?.move === 'depart'

/** `wait`: somebody holds it. `gone`: it lives elsewhere already. */
export const readiness = (task: TaskRecord): 'go' | 'wait' | 'gone' => {
  if (task.status === 'running') return 'wait'
  return hasDeparted(task) ? 'gone' : 'go'
}

/**
 * To be written under the revision of which the copy was made: then the copy is the task. `completedAt` stays as it is: one
 * that was pending has not ended, and prune leaves it alone, so that its absence always means that it did not depart.
 */
export const depart = (task: TaskRecord, actor: Actor, to: string): Change => {
  if (readiness(task) !== 'go') {
    throw new HoldfastError('INTERNAL', `task ${task.id} is ${task.status} and cannot be moved`, { id: task.id })
  }
  const tag = movedTag(to)
  return move(
    task,
    'depart',
    'archived',
    actor,
    {
      archivedFrom: task.status === 'archived' ? task.archivedFrom : task.status,
      tags: { ...task.tags, [MOVED_TAG]: tag },
    },
    { reason: `moved to ${tag}` },
  )
}

/** The task as it is, for the other store: only what is the first store's own affair stays behind. */
export const copyOf = ({ mark: _, ...task }: TaskRecord): TaskRecord => task

/** The key that goes with the task: its own, and only while it stands for it. */
export const keyOf = (task: TaskRecord, key: KeyRecord | null, now: Instant): KeyRecord | null =>
  key !== null && key.key === task.idempotencyKey && key.taskId === task.id && keyIsLive(key, true, now) ? key : null

/**
 * What a task under the same id on the other store is to the one here:
 * - `same`: the copy, as it was made. `ahead`: the copy, and it has been moved there since.
 * - `stale`: an older copy, or what stayed behind when it came from there: it may be replaced.
 * - `foreign`: neither; two tasks that have an id in common.
 */
export const kinship = (here: TaskRecord, there: TaskRecord): 'same' | 'ahead' | 'stale' | 'foreign' => {
  const left = hasDeparted(there)
    ? { ...there, revision: there.revision - 1, history: there.history.slice(0, -1) }
    : there
  if (!isSameBirth(here.history[0], left.history[0])) return 'foreign'
  if (left !== there) return left.revision <= here.revision && hasEntry(here, left) ? 'stale' : 'foreign'
  if (left.revision === here.revision) return hasEntry(here, left) ? 'same' : 'foreign'
  if (left.revision < here.revision) return hasEntry(here, left) ? 'stale' : 'foreign'
  return hasEntry(left, here) ? 'ahead' : 'foreign'
}

const isSameBirth = (a: HistoryEntry | undefined, b: HistoryEntry | undefined): boolean =>
  a !== undefined && a.op === b?.op && a.at === b.at

/** Whether the last entry of `earlier` stands in `later`, too; one that was dropped from the middle counts as there. */
const hasEntry = (later: TaskRecord, earlier: TaskRecord): boolean => {
  const last = earlier.history.at(-1)
  if (last === undefined) return false
  const entry = later.history.find(({ n }) => n === last.n)
  if (entry === undefined) return last.n < (later.history[1]?.n ?? 0)
  return entry.op === last.op && entry.move === last.move
}
