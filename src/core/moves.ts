/** The table of every legal move, and what all of them do. machine.ts decides which one it is. */
import { HoldfastError } from './errors.ts'
import type { Change, ChangeSet, HistoryEntry, Instant, TaskRecord, TaskStatus } from './task.ts'

interface Move {
  /** For each possible status before the move, the possible statuses after it. */
  readonly ways: { readonly [From in TaskStatus]?: readonly TaskStatus[] }
  readonly what: string
}

const ENDED_BADLY: readonly TaskStatus[] = ['pending', 'failed', 'cancelled']

/** docs/lifecycle.md is printed from this table; `move` refuses what it does not list. */
export const MOVES = {
  submit: { ways: {}, what: 'Creates the task, as pending.' },
  claim: {
    ways: { pending: ['running'] },
    what: 'A worker takes it: attempts +1, a new lease token. Only if available and not expired.',
  },
  complete: { ways: { running: ['completed'] }, what: 'The handler returned: its output is stored.' },
  fail: {
    ways: { running: ENDED_BADLY },
    what: 'The handler threw. With retries left: retryCount +1, due after a backoff. None left, or PermanentError: failed. Cancel requested: cancelled.',
  },
  'lose-lease': {
    ways: { running: ENDED_BADLY },
    what: 'Its lease lapsed and a worker noticed: like fail, with the error "lease expired".',
  },
  'time-out': { ways: { running: ENDED_BADLY }, what: 'One run took longer than `timeout`: like fail.' },
  reschedule: {
    ways: { running: ENDED_BADLY },
    what: 'Durable sleep: rescheduleCount +1, due after the delay; costs no retry. Past maxReschedules: failed.',
  },
  step: {
    ways: { running: ['running'] },
    what: 'Records the result of a step, or the end of a wait, in the journal. Clears `expiresAt`: a ttl means "start by". Not in the history.',
  },
  park: {
    ways: { running: ['pending', 'cancelled'] },
    what: 'The handler sleeps or waits for a signal: due at the wake instant or the deadline. No counter changes. Cancel requested: cancelled.',
  },
  signal: {
    ways: { pending: ['pending'], running: ['running'] },
    what: 'Keeps a signal for the handler in the journal. Makes a task that waits for it due at once. Not in the history.',
  },
  release: {
    ways: { running: ['pending', 'cancelled'] },
    what: 'Returned to the queue, at shutdown or before it was started: no counter changes.',
  },
  expire: {
    ways: { pending: ['expired'] },
    what: 'It reached expiresAt before it was claimed, or an operator expired it.',
  },
  amend: {
    ways: { pending: ['pending'] },
    what: 'Changes a pending task: its priority, availableAt, expiresAt, input, group or tags. No counter changes.',
  },
  cancel: { ways: { pending: ['cancelled'] }, what: 'Cancelled before it was claimed.' },
  'request-cancel': {
    ways: { running: ['running'] },
    what: 'Asks a running task to stop: its signal aborts, and any outcome but success becomes cancelled.',
  },
  retry: {
    ways: { failed: ['pending'], cancelled: ['pending'], running: ['pending', 'cancelled'] },
    what: 'By an operator. From failed: requires retries left, uses one. From cancelled: uses none. From running: requires retries left, revokes the lease, no backoff.',
  },
  replay: {
    ways: { failed: ['pending'] },
    what: 'Runs a dead letter again: retryCount and rescheduleCount reset to 0, replayCount +1, expiry cleared or set to a new time.',
  },
  archive: {
    ways: { completed: ['archived'], failed: ['archived'], cancelled: ['archived'], expired: ['archived'] },
    what: 'Hides an ended task from default lists.',
  },
  unarchive: {
    ways: { archived: ['completed', 'failed', 'cancelled', 'expired'] },
    what: 'Restores the status before archive. Not possible for a task that was moved to another store.',
  },
  depart: {
    ways: {
      pending: ['archived'],
      completed: ['archived'],
      failed: ['archived'],
      cancelled: ['archived'],
      expired: ['archived'],
      archived: ['archived'],
    },
    what: 'Moved to another store, where it continues unchanged: the copy that stays here has the tag `moved` and cannot be unarchived.',
  },
  arrive: {
    ways: { archived: ['pending'] },
    what: 'Moved here from another store, where it has departed: until then no worker can claim it here.',
  },
} as const satisfies Record<string, Move>

/** The name of a move. */
export type MoveName = keyof typeof MOVES

export const isLegal = (name: MoveName, from: TaskStatus, to: TaskStatus): boolean => {
  const { ways }: Move = MOVES[name]
  return ways[from]?.includes(to) ?? false
}

/** Moves that end a run under its own lease. An operator's `retry` may also end one, but not always. */
export const RUN_ENDS: ReadonlySet<string> = new Set<MoveName>([
  'complete',
  'fail',
  'lose-lease',
  'time-out',
  'reschedule',
  'park',
  'release',
])

/** Who moves the task, when, and the id of the call. */
export interface Actor {
  readonly now: Instant
  readonly by: string
  readonly op: string
}

export type EntryFacts = Omit<Partial<HistoryEntry>, 'n' | 'at' | 'move' | 'to' | 'by' | 'op'>

/** The change that the move `name` makes to `task`. Refuses what the table does not list. */
export const move = (
  task: TaskRecord,
  name: MoveName,
  to: TaskStatus,
  actor: Actor,
  set: ChangeSet,
  facts: EntryFacts = {},
): Change => {
  if (!isLegal(name, task.status, to)) {
    throw new HoldfastError('INTERNAL', `move ${name} from ${task.status} to ${to} is not in the table`, {
      id: task.id,
    })
  }
  const { now, by, op } = actor
  return {
    id: task.id,
    queue: task.queue,
    revision: task.revision,
    from: task.status,
    set: { status: to, updatedAt: now, ...set },
    entry: { n: task.revision + 1, at: now, move: name, to, by, op, ...facts },
    ...(task.mark === undefined ? null : { mark: task.mark }),
  }
}

/** Whether the history shows that this operation was already written: then a repeat is a success. */
export const hasOp = (task: TaskRecord, op: string, moves: readonly MoveName[]): boolean =>
  task.history.some((entry) => entry.op === op && (moves as readonly string[]).includes(entry.move))
