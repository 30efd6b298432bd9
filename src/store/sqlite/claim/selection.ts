/** Which tasks a look leases: those that are ready, as far as the limits of the queue permit. */
import type { DatabaseSync } from 'node:sqlite'
import { type ClaimLimits, UNLIMITED } from '../../../core/group-turns.ts'
import type { Instant } from '../../../core/task.ts'
import type { ClaimRequest } from '../../store.ts'
import { prepared } from '../connection.ts'
import { countOf } from '../read/counts.ts'
import { earlier, Ready } from './ready.ts'
import { type Start, Turns } from './turns.ts'

/** What limits have held back, as of ClaimResult. */
export interface HeldBack {
  readonly full: readonly string[]
  readonly isHeldBack: boolean
}

export interface Selection {
  readonly keys: readonly number[]
  /** The next instant at which a task becomes available. */
  readonly later: Instant | null
  /** Some of them may have a group. */
  readonly isGrouped: boolean
  /** null: the queue has no limits. */
  readonly held: HeldBack | null
  /** For the look that leases, where this one only asked for the first task. */
  readonly start: Start | null
  /** What this look has seen has had its turn. */
  turnOver(): void
}

/** At most `limit`. The counts of the queue must be written. */
export const select = (
  db: DatabaseSync,
  want: ClaimRequest,
  now: Instant,
  limit: number,
  start: Start | null = null,
): Selection => {
  const { queue, types, id, limits } = want
  if (id !== undefined) return selectOne(db, want, id, now)
  const ready = new Ready(db, queue, types, now)
  const { isGrouped } = ready
  if (limits === undefined)
    return { ...ready.keys(limit), isGrouped, held: null, start: null, turnOver: () => ready.turnOver() }
  const turns = limits.turns && new Turns(db, queue, limits.turns, now, limit, ready.first, start)
  const room = roomOf(db, queue, limits, now)
  // One more than there is room for tells whether anything is held back.
  const { keys, later } = ready.keys(Math.min(limit, room + 1), turns?.pick, room < limit)
  return {
    keys: keys.slice(0, room),
    later: earlier(later, turns?.next),
    isGrouped,
    held: heldBack(limits, now, turns, room < limit && keys.length > room),
    start: turns?.start ?? null,
    turnOver: () => {
      ready.turnOver()
      turns?.turnOver()
    },
  }
}

const ONE = `select key, task_group from holdfast_task where id = ?1 and status = 'pending' and queue = ?2 and available_at <= ?3 and (expires_at is null or expires_at > ?3) and (?4 is null or type in (select value from json_each(?4)))`

const selectOne = (
  db: DatabaseSync,
  { queue, types, limits = UNLIMITED }: ClaimRequest,
  id: string,
  now: Instant,
): Selection => {
  const found = prepared(db, ONE).get(id, queue, now, types && JSON.stringify(types)) as unknown as
    | [key: number, group: string | null]
    | undefined
  const turns = limits.turns && new Turns(db, queue, limits.turns, now, 1, () => [])
  const room = found === undefined ? 0 : roomOf(db, queue, limits, now)
  const isPermitted = found !== undefined && (turns === null || turns.permits(found[1]))
  return {
    keys: isPermitted && room > 0 ? [found[0]] : [],
    later: null,
    isGrouped: true,
    held: heldBack(limits, now, turns, isPermitted && room === 0),
    start: null,
    turnOver: () => {},
  }
}

const isVoid = ({ notAfter }: ClaimLimits, now: Instant): boolean => notAfter !== null && now > notAfter

/** How many more tasks of the queue may run. */
const roomOf = (db: DatabaseSync, queue: string, limits: ClaimLimits, now: Instant): number => {
  if (isVoid(limits, now)) return 0
  if (limits.concurrency === null) return Number.POSITIVE_INFINITY
  return Math.max(0, limits.concurrency - countOf(db, queue, 'running'))
}

const heldBack = (limits: ClaimLimits, now: Instant, turns: Turns | null, isOverRoom: boolean): HeldBack =>
  isVoid(limits, now)
    ? { full: [], isHeldBack: false }
    : { full: turns?.full ?? [], isHeldBack: isOverRoom || turns?.isHeldBack === true }
