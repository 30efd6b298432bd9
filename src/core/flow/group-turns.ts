/** Which of the ready tasks the limits of a queue permit, and in which order. Stores that cannot evaluate this on a server use `permitted`. */
import type { Instant, TaskRecord } from '../task.ts'

/** The limits that bind one claim. They compare with running tasks of every worker and type, lapsed leases included. */
export interface ClaimLimits {
  /** The most running tasks of the queue. null: no limit. */
  readonly concurrency: number | null
  /** Nothing is leased after this instant: the permits of a rate are void then. null: no limit. */
  readonly notAfter: Instant | null
  /** null: tasks are claimed in claim order, whatever their group. */
  readonly turns: GroupTurns | null
}

/**
 * Within one priority, across types, the groups that wait take turns. All ungrouped tasks are one group, which is written '' here; `perGroup`,
 * `without` and `only` do not bind it.
 */
export interface GroupTurns {
  /** The most running tasks of one group. null: no limit. */
  readonly perGroup: number | null
  /** The group that had the last turn: the next one, in an order of the store's own, begins. null: the store chooses. */
  readonly after: string | null
  /** How many tasks of one group this claim may lease. */
  readonly mostEach: number
  /** Groups of which nothing is leased. */
  readonly without: readonly string[]
  /** Only these groups, and how many tasks of each. null: all groups. */
  readonly only: ReadonlyMap<string, number> | null
  /** Groups that were full a moment ago, by ranges in the store's own order: it may pass over these without looking. */
  readonly passed: readonly GroupRange[]
}

/** From the first to the last, both included. */
export interface GroupRange {
  readonly first: string
  readonly last: string
}

/** The limits of a queue that has none. */
export const UNLIMITED: ClaimLimits = { concurrency: null, notAfter: null, turns: null }

/** What turns depend on. Some stores decide about hints before they read a task. */
export type Waiting = Pick<TaskRecord, 'priority' | 'group'>

export interface Permitted<Task extends Waiting = TaskRecord> {
  /** In the order to run them. */
  readonly tasks: readonly Task[]
  /** Groups with a ready task that has no place because of `perGroup`, in the store's order. Those passed over unlooked are not in it. */
  readonly full: readonly string[]
  /** A ready task was left because of `concurrency` or `perGroup`: it may become claimable when any task ends. */
  readonly isHeldBack: boolean
}

export const groupOf = ({ group }: Pick<TaskRecord, 'group'>): string => group ?? ''

/** `ready` is in claim order; `running` are all running tasks of the queue. */
export const permitted = <Task extends Waiting>(
  ready: readonly Task[],
  running: readonly Pick<TaskRecord, 'group'>[],
  { concurrency, turns, notAfter }: ClaimLimits,
  limit: number,
  now: Instant,
): Permitted<Task> => {
  if (notAfter !== null && now > notAfter) return { tasks: [], full: [], isHeldBack: false }
  const places = concurrency === null ? Number.POSITIVE_INFINITY : Math.max(0, concurrency - running.length)
  const inOrder = turns === null ? ready : inTurns(ready, running, turns)
  const tasks = inOrder.slice(0, Math.min(limit, places))
  const full = turns === null ? [] : fullGroups(ready, running, tasks, turns)
  return { tasks, full, isHeldBack: full.length > 0 || (places < limit && inOrder.length > places) }
}

/** The groups of these tasks in the order of their turns; ungrouped tasks have none. */
export const groupsInTurn = (tasks: readonly Pick<TaskRecord, 'group'>[], after: string | null): readonly string[] =>
  rotated([...new Set(tasks.flatMap(({ group }) => group ?? []))].sort(byText), after)

/** All that may be claimed, turn by turn. */
const inTurns = <Task extends Waiting>(
  ready: readonly Task[],
  running: readonly Pick<TaskRecord, 'group'>[],
  turns: GroupTurns,
): readonly Task[] => {
  const runningOf = countByGroup(running)
  const left = new Map<string, number>()
  for (const task of ready) {
    const group = groupOf(task)
    if (!left.has(group)) left.set(group, allowanceOf(group, runningOf.get(group) ?? 0, turns))
  }
  const rotation = rotated([...left.keys()].sort(byText), turns.after)
  const tasks: Task[] = []
  for (const level of groupedBy(ready, ({ priority }) => priority).values()) {
    const lines = groupedBy(level, groupOf)
    const inRotation = rotation.flatMap((group) => lines.get(group)?.slice(0, left.get(group)) ?? [])
    const turnOf = new Map<string, number>()
    const rounds = groupedBy(inRotation, (task) => {
      const turn = turnOf.get(groupOf(task)) ?? 0
      turnOf.set(groupOf(task), turn + 1)
      return turn
    })
    for (let round = 0; round < rounds.size; round++) tasks.push(...rounds.get(round)!)
    for (const [group, taken] of turnOf) left.set(group, left.get(group)! - taken)
  }
  return tasks
}

const allowanceOf = (group: string, running: number, turns: GroupTurns): number => {
  const { perGroup, mostEach, without, only } = turns
  if (group === '') return mostEach
  if (without.includes(group)) return 0
  const free = perGroup === null ? mostEach : Math.max(0, perGroup - running)
  return Math.min(free, mostEach, only === null ? mostEach : (only.get(group) ?? 0))
}

/** The groups behind `after` come first. */
const rotated = (groups: readonly string[], after: string | null): readonly string[] => {
  const first = after === null ? 0 : groups.findIndex((group) => byText(group, after) > 0)
  return first <= 0 ? groups : [...groups.slice(first), ...groups.slice(0, first)]
}

const fullGroups = (
  ready: readonly Waiting[],
  running: readonly Pick<TaskRecord, 'group'>[],
  taken: readonly Waiting[],
  { perGroup, without }: GroupTurns,
): readonly string[] => {
  if (perGroup === null) return []
  const [waitingOf, runningOf, takenOf] = [countByGroup(ready), countByGroup(running), countByGroup(taken)]
  const isFull = (group: string): boolean => {
    const started = takenOf.get(group) ?? 0
    return waitingOf.get(group)! > started && (runningOf.get(group) ?? 0) + started >= perGroup
  }
  return [...waitingOf.keys()].filter((group) => group !== '' && !without.includes(group) && isFull(group)).sort(byText)
}

const countByGroup = (tasks: readonly Pick<TaskRecord, 'group'>[]): ReadonlyMap<string, number> => {
  const counts = new Map<string, number>()
  for (const task of tasks) counts.set(groupOf(task), (counts.get(groupOf(task)) ?? 0) + 1)
  return counts
}

const groupedBy = <Task, Key>(tasks: readonly Task[], keyOf: (task: Task) => Key): Map<Key, Task[]> => {
  const parts = new Map<Key, Task[]>()
  for (const task of tasks) {
    const key = keyOf(task)
    const part = parts.get(key)
    if (part === undefined) parts.set(key, [task])
    else part.push(task)
  }
  return parts
}

const byText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
