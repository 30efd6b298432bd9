/** One look at a queue: leases ready tasks, reports overdue ones, and says when to look again. */
import type { DatabaseSync } from 'node:sqlite'
import { cutToWeight, readToWeight } from '../../../core/page-weight.ts'
import type { Instant } from '../../../core/task.ts'
import { COLUMNS, type Row } from '../../sql/rows.ts'
import type { ClaimRequest } from '../../store.ts'
import { prepared } from '../connection.ts'
import type { Tally } from '../read/counts.ts'
import { cutRows } from '../read/query.ts'
import { CLAIMED_COLUMNS, type Claimed, packClaimed } from './claimed.ts'
import { earlier, one } from './ready.ts'
import { type HeldBack, select } from './selection.ts'
import type { Start } from './turns.ts'

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

/** So long it may be remembered that a group was full: the claim may have waited for the lock. */
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
