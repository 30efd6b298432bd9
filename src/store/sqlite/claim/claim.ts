/** One look at a queue: leases ready tasks as far as its limits permit, reports overdue ones, and says when to look again. */
import type { DatabaseSync } from 'node:sqlite'
import { type ClaimLimits, UNLIMITED } from '../../../core/flow/group-turns.ts'
import { cutToWeight, readToWeight } from '../../../core/storage/page-weight.ts'
import type { Instant } from '../../../core/task.ts'
import { COLUMNS, type Row } from '../../sql/rows.ts'
import type { ClaimRequest } from '../../store.ts'
import { prepared } from '../file/connection.ts'
import { countOf, type Tally } from '../read/counts.ts'
import { cutRows } from '../read/query.ts'
import { CLAIMED_COLUMNS, type Claimed, packClaimed } from './claimed.ts'
import { earlier, one, Ready } from './ready.ts'
import { type Start, Turns } from './turns.ts'

/** What limits have held back, as of ClaimResult. */
interface HeldBack {
  readonly full: readonly string[]
  readonly isHeldBack: boolean
}

export interface ClaimedRows {
  readonly now: Instant
  readonly leased: Claimed | null
  readonly due: Row[]
  readonly next: Instant | null
  readonly held: HeldBack | null
}

const LAPSED = `select ${COLUMNS} from holdfast_task indexed by holdfast_task_lease where status = 'running' and lease_expires_at <= ? order by lease_expires_at limit ?`
const EXPIRED = `select ${COLUMNS} from holdfast_task indexed by holdfast_task_expiry where status = 'pending' and expires_at <= ? order by expires_at limit ?`
const FIRST_LAPSE = `select lease_expires_at from holdfast_task indexed by holdfast_task_lease where status = 'running' order by lease_expires_at limit 1`
const FIRST_EXPIRY = `select expires_at from holdfast_task indexed by holdfast_task_expiry where status = 'pending' and expires_at is not null order by expires_at limit 1`

/** Writes the same record as machine.claim, and the same history entry as JSON.stringify. */
const LEASE = `
  update holdfast_task set
    status = 'running', revision = revision + 1, attempts = attempts + 1, updated_at = ?1, started_at = ?1,
    lease_token = ?2 || '.' || key, lease_worker = ?3, lease_claimed_at = ?1, lease_expires_at = ?4, lease_ttl = ?8,
    history = history || ',{"n":' || (revision + 1) || ',"at":' || ?1 || ',"move":"claim","to":"running","by":' || ?5 || ',"op":' || ?7 || '.' || key || '"}'
  where key in (select value from json_each(?6))`

/** Rows are read before they are written: RETURNING copies every row once more, and has no defined order. */
const byKeys = (columns: string): string =>
  `select ${columns} from holdfast_task where key in (select value from json_each(?))`
const GROUPED = byKeys(CLAIMED_COLUMNS)
/** The last column of a row costs 1% of a claim to reach. */
const UNGROUPED = byKeys(CLAIMED_COLUMNS.replace('task_group', 'null'))

/**
 * The result of a look that finds nothing to lease and no lapsed lease, without a transaction, so that an idle worker never takes the write
 * lock. null if it needs the lock. While another process holds the lock, no worker can renew, and live workers must not look dead.
 */
export const idleLook = (db: DatabaseSync, want: ClaimRequest, now: Instant): ClaimedRows | null => {
  const { keys, later, held, start, turnOver } = select(db, want, now, 1)
  if (keys.length > 0 && want.limit > 0) {
    if (start !== null) starts.set(want, { start, at: now })
    return null
  }
  const { lapsed, expired } = dueRows(db, want, now)
  if (lapsed.length > 0) return null
  turnOver()
  return { now, leased: null, due: expired, next: nextLook(db, later), held }
}

/** Under the write lock. `isLate`: the look has waited for it, and so have the renewals of others. They come first: lapsed leases are left out. */
export const claimRows = (
  db: DatabaseSync,
  want: ClaimRequest,
  now: Instant,
  tally: Tally,
  isLate: boolean,
): ClaimedRows => {
  // Claims that share this transaction count.
  if (want.limits !== undefined) tally.write(db)
  const {
    keys: found,
    later,
    held,
    isGrouped,
    turnOver,
  } = select(db, want, now, Math.max(1, want.limit), startOf(want, now))
  const keys = want.limit === 0 ? [] : found
  turnOver()
  const rows = keys.length === 0 ? [] : rowsOf(db, keys, isGrouped ? GROUPED : UNGROUPED)
  if (rows.length > 0) lease(db, want, now, keys.slice(0, rows.length))
  tally.add(want.queue, 'pending', -rows.length)
  tally.add(want.queue, 'running', rows.length)
  const next = rows.length < keys.length ? now : nextLook(db, later)
  const { lapsed, expired } = dueRows(db, want, now)
  const due = isLate ? expired : [...lapsed, ...expired]
  return { now, leased: rows.length === 0 ? null : packClaimed(rows), due, next, held }
}

/** Where looks without a transaction have found the first task, so that the claim need not pass the same full groups again. */
const starts = new WeakMap<ClaimRequest, { readonly start: Start; readonly at: Instant }>()

/** How long a group may be remembered as full: the claim may have waited for the lock. */
const REMEMBERED = 100

const startOf = (want: ClaimRequest, now: Instant): Start | null => {
  const found = starts.get(want)
  return found !== undefined && Math.abs(now - found.at) < REMEMBERED ? found.start : null
}

const KEY_AT = 0
const INPUT_AT = CLAIMED_COLUMNS.split(', ').indexOf('input')

/** In the order of the keys: all of them, or as many of the first as one reply may hold. */
const rowsOf = (db: DatabaseSync, keys: readonly number[], sql: string): Row[] => {
  const { taken, isCut } = cutToWeight(
    prepared(db, sql).iterate(JSON.stringify(keys)) as unknown as Iterable<Row>,
    weightOfClaimed,
  )
  if (!isCut) {
    const byKey = new Map(taken.map((row) => [row[KEY_AT] as number, row]))
    return keys.map((key) => byKey.get(key)!)
  }
  // SQLite returned them in another order: read them again one by one.
  return readToWeight(keys, (key) => prepared(db, sql).get(`[${key}]`) as unknown as Row, weightOfClaimed)
}

const weightOfClaimed = (row: Row): number => (row[INPUT_AT] as string).length

const lease = (
  db: DatabaseSync,
  { op, workerId, leaseTtl }: ClaimRequest,
  now: Instant,
  keys: readonly number[],
): void => {
  const list = JSON.stringify(keys)
  prepared(db, LEASE).run(now, op, workerId, now + leaseTtl, JSON.stringify(workerId), list, openQuoted(op), leaseTtl)
}

/** A JSON string without its closing quote, so that the rest of the token can be appended. */
const openQuoted = (text: string): string => JSON.stringify(text).slice(0, -1)

const dueRows = (
  db: DatabaseSync,
  { dueLimit }: ClaimRequest,
  now: Instant,
): { readonly lapsed: Row[]; readonly expired: Row[] } => {
  if (dueLimit === 0) return { lapsed: [], expired: [] }
  const { taken: lapsed, isCut } = cutRows(prepared(db, LAPSED).iterate(now, dueLimit))
  if (isCut || lapsed.length === dueLimit) return { lapsed, expired: [] }
  return { lapsed, expired: cutRows(prepared(db, EXPIRED).iterate(now, dueLimit - lapsed.length)).taken }
}

const nextLook = (db: DatabaseSync, later: Instant | null): Instant | null =>
  earlier(earlier(later, one(db, FIRST_LAPSE)), one(db, FIRST_EXPIRY))

// ── which tasks are leased ──────────────────────────────────────────────────────────────────────────────────────

interface Selection {
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
const select = (
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
