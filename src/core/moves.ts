/** The table of every legal move, and what all of them do. machine.ts decides which one it is. */
import { HoldfastError } from './errors.ts'
import type { Change, ChangeSet, HistoryEntry, Instant, TaskRecord, TaskStatus } from './task.ts'

interface Move {
  readonly from: readonly TaskStatus[]
  readonly to: readonly TaskStatus[]
  readonly what: string
}

/** docs/lifecycle.md is printed from this table; `move` refuses what it does not list. */
export const MOVES = {
  submit: { from: [], to: ['pending'], what: 'A new task.' },
  claim: {
    from: ['pending'],
    to: ['running'],
    what: 'A worker takes it: attempts +1, a new lease token. Only if available and not expired.',
  },
  complete: { from: ['running'], to: ['completed'], what: 'The handler returned: its output is stored.' },
  fail: {
    from: ['running'],
    to: ['pending', 'failed', 'cancelled'],
    what: 'The handler threw. With retries left: retryCount +1, due after a backoff. None left, or PermanentError: failed. A stop was asked for: cancelled.',
  },
  'lose-lease': {
    from: ['running'],
    to: ['pending', 'failed', 'cancelled'],
    what: 'Its lease lapsed and somebody noticed: as fail, with the error "lease expired".',
  },
  'time-out': {
    from: ['running'],
    to: ['pending', 'failed', 'cancelled'],
    what: 'One run took longer than `timeout`: as fail.',
  },
  reschedule: {
    from: ['running'],
    to: ['pending', 'failed', 'cancelled'],
    what: 'Durable sleep: rescheduleCount +1, due after the delay; costs no retry. Past maxReschedules: failed.',
  },
  release: {
    from: ['running'],
    to: ['pending', 'cancelled'],
    what: 'Given back unharmed at shutdown: no counter moves.',
  },
  expire: {
    from: ['pending'],
    to: ['expired'],
    what: 'It reached expiresAt before it was claimed, or was marked by hand.',
  },
  cancel: { from: ['pending'], to: ['cancelled'], what: 'Somebody cancelled it.' },
  'request-cancel': {
    from: ['running'],
    to: ['running'],
    what: 'Somebody asked a running task to stop: its signal aborts, and any end but success is cancelled.',
  },
  retry: {
    from: ['failed', 'cancelled', 'running'],
    to: ['pending', 'failed', 'cancelled'],
    what: 'By an operator. From failed: needs retries left, adds one. From cancelled: adds none. From running: the lease is taken away, no backoff.',
  },
  replay: {
    from: ['failed'],
    to: ['pending'],
    what: 'From the dead letters: retryCount and rescheduleCount back to 0, replayCount +1, expiry cleared or given anew.',
  },
  archive: {
    from: ['completed', 'failed', 'cancelled', 'expired'],
    to: ['archived'],
    what: 'Hidden from default lists.',
  },
  unarchive: {
    from: ['archived'],
    to: ['completed', 'failed', 'cancelled', 'expired'],
    what: 'Back to the status before archive. Not for what was moved to another store.',
  },
  depart: {
    from: ['pending', 'completed', 'failed', 'cancelled', 'expired', 'archived'],
    to: ['archived'],
    what: 'Moved to another store, where it lives on as it was: what stays here has the tag `moved`, and does not come back.',
  },
} as const satisfies Record<string, Move>

export type MoveName = keyof typeof MOVES

/** Who moves the task, when, and under which id of the call. */
export interface Actor {
  readonly now: Instant
  readonly by: string
  readonly op: string
}

export type EntryFacts = Omit<Partial<HistoryEntry>, 'n' | 'at' | 'move' | 'to' | 'by' | 'op'>

/** The change that `name` makes of `task`. Refuses what the table does not list. */
export const move = (
  task: TaskRecord,
  name: MoveName,
  to: TaskStatus,
  actor: Actor,
  set: ChangeSet,
  facts: EntryFacts = {},
): Change => {
  const { from, to: targets }: Move = MOVES[name]
  if (!from.includes(task.status) || !targets.includes(to)) {
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

/** Whether the history shows that this very operation was written: then a repeat is a success. */
export const hasOp = (task: TaskRecord, op: string, moves: readonly MoveName[]): boolean =>
  task.history.some((entry) => entry.op === op && (moves as readonly string[]).includes(entry.move))
