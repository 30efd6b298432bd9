/** What the fetcher knows of each queue, and when a look asks for overdue tasks. */

/** Types that are claimed together. */
export interface FetchLane {
  readonly types: () => readonly string[]
  /** How many tasks the looks in flight may return. The fetcher counts it. */
  asked: number
  /** How many tasks may be claimed now. */
  room(): number
  /** How many of them could start at once. */
  startable(): number
}

interface KnownGroups {
  readonly count: number
  /** Monotonic. */
  readonly seenAt: number
}

/** The state of a queue for one lane. */
export interface QueueState {
  readonly name: string
  readonly lane: FetchLane
  /** Monotonic: the next look, unless a wake-up comes first. */
  restUntil: number
  /** Looks in flight: a second one starts beside the first only while there is much work, and few others do it. */
  looks: number
  isFull: boolean
  /** A look that takes one task of each group at most is in flight. */
  isAhead: boolean
  /** As far as the last look saw, at least as many groups wait as there are free slots. */
  hasManyGroups: boolean
  /** From how many groups a look ahead can take a task, if none of theirs is held; null: not known. */
  groups: KnownGroups | null
  /** Counts wake-ups, because one that arrives during a look may be about a task which that look did not see. */
  wakes: number
  /** The store said that there may be work, and no look has begun since. */
  isWoken: boolean
  /** The last look left overdue tasks to the next one. */
  hasPutOffDue: boolean
  /** Monotonic: when a look last asked for overdue tasks. */
  dueAskedAt: number
  /** The last look for overdue tasks found some that may not be moved yet. */
  hasLeftAlone: boolean
}

export const newState = (name: string, lane: FetchLane): QueueState => ({
  name,
  lane,
  restUntil: 0,
  looks: 0,
  isFull: false,
  isAhead: false,
  hasManyGroups: false,
  groups: null,
  wakes: 0,
  isWoken: false,
  hasPutOffDue: false,
  dueAskedAt: Number.NEGATIVE_INFINITY,
  hasLeftAlone: false,
})

/** Overdue tasks are looked for at most this often, however often tasks are claimed. */
const DUE_EVERY = 100

/** Compare with this instant, not with a difference: after rounding, a look at exactly this instant could seem too early and repeat at once. */
export const mayAskAgain = ({ dueAskedAt }: QueueState): number => dueAskedAt + DUE_EVERY

/**
 * Called when a look begins. One that a wake-up causes leaves overdue tasks to the look after it, so that the task behind the wake-up starts
 * sooner. Only where a look at any queue finds them (`coversAll`), so that the next look of this worker makes up for it.
 */
export const asksForDue = (state: QueueState, now: number, coversAll: boolean): boolean => {
  const { isWoken, hasPutOffDue } = state
  state.isWoken = false
  if (now < mayAskAgain(state)) return false
  state.hasPutOffDue = isWoken && !hasPutOffDue && coversAll
  return !state.hasPutOffDue
}

/** How long the number of groups that wait is believed. */
const GROUPS_LIFE = 1_000

/**
 * Called after a look ahead that may have seen all groups that wait: it took `leased` tasks, one of each group, and left out the groups of the
 * `unstarted` ones.
 */
export const sawGroups = (state: QueueState, leased: number, unstarted: number, now: number): void => {
  state.groups = { count: leased + unstarted, seenAt: now }
}

/**
 * How many tasks a look ahead asks for. One that asks for more than there are groups without a task that is held hops over all the others to find
 * none. So it waits until half of the groups may be taken from, unless slots are free.
 */
export const mostAhead = (
  { groups }: QueueState,
  room: number,
  free: number,
  held: () => number,
  now: number,
): number => {
  if (groups === null || now - groups.seenAt > GROUPS_LIFE) return room
  const open = groups.count - held()
  if (free <= 0 && open < Math.min(groups.count, room) / 2) return 0
  return Math.min(room, Math.max(free, open))
}
