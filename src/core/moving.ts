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

/** Whether the task that the other store has under the same key is the same work: waiting here and there, it would be done twice. */
export const isRepeated = ({ status }: TaskRecord, key: KeyRecord | undefined, there: KeyRecord): boolean =>
  status === 'pending' && there.hash === key?.hash

/**
 * What a task under the same id on the other store is to the one here:
 * - `same`: the copy, as it was made. `ahead`: the copy, and it has been moved there since.
 * - `stale`: an older copy, or what stayed behind when it came from there, or a copy that went its own way but was never
 *   claimed there (it expired, or somebody cancelled it, while the task itself went on here): it may be replaced.
 * - `foreign`: none of these; two tasks that have an id in common, or two runs.
 */
export const kinship = (here: TaskRecord, there: TaskRecord): 'same' | 'ahead' | 'stale' | 'foreign' => {
  const left = hasDeparted(there)
    ? { ...there, revision: there.revision - 1, history: there.history.slice(0, -1) }
    : there
  if (!isSameBirth(here.history[0], left.history[0])) return 'foreign'
  if (left !== there) return left.revision <= here.revision && hasLastOf(here, left) ? 'stale' : 'foreign'
  if (left.revision > here.revision && hasLastOf(left, here)) return 'ahead'
  if (hasLastOf(here, left)) return left.revision === here.revision ? 'same' : 'stale'
  return left.history.some((entry) => entry.move === 'claim' && !hasEntry(here, entry)) ? 'foreign' : 'stale'
}

const isSameBirth = (a: HistoryEntry | undefined, b: HistoryEntry | undefined): boolean =>
  a !== undefined && a.op === b?.op && a.at === b.at

const hasLastOf = (later: TaskRecord, earlier: TaskRecord): boolean => hasEntry(later, earlier.history.at(-1)!)

/** One that was dropped from the middle of a long history counts as there. */
const hasEntry = ({ history }: TaskRecord, { n, op, move: name }: HistoryEntry): boolean => {
  const entry = history.find((one) => one.n === n)
  return entry === undefined ? n < (history[1]?.n ?? 0) : entry.op === op && entry.move === name
}
