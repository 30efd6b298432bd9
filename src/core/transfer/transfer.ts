/** The rules for moving a task to another store: when it may move, what stays behind, and how to judge an existing copy. */
import { HoldfastError } from '../errors.ts'
import { type KeyRecord, keyIsLive } from '../idempotency.ts'
import { type Actor, move } from '../moves.ts'
import { applyChange, type Change, type HistoryEntry, type Instant, type TaskRecord } from '../task.ts'

/** The tag of the copy that stays behind: the address of the store where the task continues. */
export const MOVED_TAG = 'moved'

const LONGEST_TAG = 256

export const movedTag = (to: string): string => to.slice(0, LONGEST_TAG).toWellFormed()

/** Whether this is the copy that stayed behind after a move. Requires the history, because a user may have set the tag. */
export const hasDeparted = ({ status, history }: Pick<TaskRecord, 'status' | 'history'>): boolean =>
  status === 'archived' && history.at(-1)?.move === 'depart'

/** `wait`: a worker holds it. `gone`: it has already moved. */
export const readiness = (task: TaskRecord): 'go' | 'wait' | 'gone' => {
  if (task.status === 'running') return 'wait'
  return hasDeparted(task) ? 'gone' : 'go'
}

/**
 * Written under the revision that was copied: then the copy is the task. `completedAt` does not change: a pending task has not
 * ended, so prune leaves it alone, and a missing task always means that it did not depart.
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

/** Without the first store's private data. */
const portable = ({ mark: _, ...task }: TaskRecord): TaskRecord => task

/**
 * The task for the other store. One that waits is stored there as departed, so that no worker can claim it before its original is archived:
 * pausing the other store does not bind a worker that was suspended meanwhile, or a claim that arrives late.
 */
export const copyOf = (task: TaskRecord, departure: Change): TaskRecord => {
  if (task.status !== 'pending') return portable(task)
  return { ...applyChange(portable(task), departure), tags: task.tags, parked: task.parked }
}

/** The task before it departed. */
const beforeDeparture = (task: TaskRecord): TaskRecord =>
  hasDeparted(task) ? { ...task, revision: task.revision - 1, history: task.history.slice(0, -1) } : task

/** Whether this is the copy of a task that waits, as it is until its original is archived. */
export const isHeld = (task: TaskRecord, copy: TaskRecord): boolean => {
  if (!hasDeparted(copy) || copy.archivedFrom !== 'pending') return false
  const [original, copied] = [beforeDeparture(task), beforeDeparture(copy)]
  return (
    original.revision === copied.revision &&
    isSameBirth(original.history[0], copied.history[0]) &&
    hasLastOf(original, copied)
  )
}

/** Opens a copy whose original is archived: from here on workers may claim it. */
export const arrive = (copy: TaskRecord, actor: Actor, from: string): Change =>
  move(
    copy,
    'arrive',
    'pending',
    actor,
    // A move clears `parked` unless it sets it.
    { archivedFrom: null, parked: copy.parked },
    { reason: `moved from ${movedTag(from)}` },
  )

/** A copy made from an archived original, for one that is missing. If the task slept, it is due now, and its handler sleeps again. */
export const copyOfDeparted = (task: TaskRecord): TaskRecord => {
  const { [MOVED_TAG]: _, ...rest } = task.tags ?? {}
  const copy = { ...portable(task), tags: Object.keys(rest).length === 0 ? null : rest }
  const before = task.history.at(-2)
  if (task.archivedFrom === 'pending')
    return before?.move === 'park' ? { ...copy, availableAt: task.history.at(-1)!.at } : copy
  const status = before?.to ?? task.archivedFrom!
  return { ...beforeDeparture(copy), status, archivedFrom: status === 'archived' ? task.archivedFrom : null }
}

/** The task's own key, if it is still valid for the task. */
export const keyOf = (task: TaskRecord, key: KeyRecord | null, now: Instant): KeyRecord | null =>
  key !== null && key.key === task.idempotencyKey && key.taskId === task.id && keyIsLive(key, true, now) ? key : null

/** Whether the other store's task under the same key is the same work: if both were waiting, it would run twice. */
export const isRepeated = (
  { status }: Pick<TaskRecord, 'status'>,
  key: KeyRecord | undefined,
  there: KeyRecord,
): boolean => status === 'pending' && there.hash === key?.hash

/**
 * The relation of a task with the same id in the other store to this one:
 * - `same`: the unchanged copy, or one that waits for this task to be archived. `ahead`: the copy, which has changed there since.
 * - `stale`: an older copy, or the copy that stayed behind when the task came from there, or a copy that diverged but was never
 *   claimed there (it expired or was cancelled while the task itself continued here): it may be replaced.
 * - `foreign`: none of these: two different tasks with the same id, or two runs.
 */
export const compareCopies = (here: TaskRecord, there: TaskRecord): 'same' | 'ahead' | 'stale' | 'foreign' => {
  const left = beforeDeparture(there)
  if (!isSameBirth(here.history[0], left.history[0])) return 'foreign'
  if (isHeld(here, there)) return 'same'
  if (left !== there) return left.revision <= here.revision && hasLastOf(here, left) ? 'stale' : 'foreign'
  if (left.revision > here.revision && hasLastOf(left, here)) return 'ahead'
  if (hasLastOf(here, left)) return left.revision === here.revision ? 'same' : 'stale'
  return left.history.some((entry) => entry.move === 'claim' && !hasEntry(here, entry)) ? 'foreign' : 'stale'
}

const isSameBirth = (a: HistoryEntry | undefined, b: HistoryEntry | undefined): boolean =>
  a !== undefined && a.op === b?.op && a.at === b.at

const hasLastOf = (later: TaskRecord, earlier: TaskRecord): boolean => hasEntry(later, earlier.history.at(-1)!)

/** An entry dropped from the middle of a long history counts as present. */
const hasEntry = ({ history }: TaskRecord, { n, op, move: name }: HistoryEntry): boolean => {
  const entry = history.find((one) => one.n === n)
  return entry === undefined ? n < (history[1]?.n ?? 0) : entry.op === op && entry.move === name
}
