/** One look at a queue: lease what is ready, report what is overdue, say when to look again. */
import type { DatabaseSync } from 'node:sqlite'
import type { Instant } from '../../core/task.ts'
import { COLUMNS, type Row } from '../sql/rows.ts'
import type { Want } from '../store.ts'
import { CLAIMED_COLUMNS, type Claimed, packClaimed } from './claimed.ts'
import { prepared } from './connection.ts'
import type { Tally } from './counts.ts'
import { earlier, one, Ready } from './ready.ts'

export interface LookRows {
  readonly now: Instant
  readonly leased: Claimed | null
  readonly due: Row[]
  readonly next: Instant | null
}

const LAPSED = `select ${COLUMNS} from holdfast_task indexed by holdfast_task_lease where status = 'running' and lease_expires_at <= ? order by lease_expires_at limit ?`
const EXPIRED = `select ${COLUMNS} from holdfast_task indexed by holdfast_task_expiry where status = 'pending' and expires_at <= ? order by expires_at limit ?`
const FIRST_LAPSE = `select lease_expires_at from holdfast_task indexed by holdfast_task_lease where status = 'running' order by lease_expires_at limit 1`
const FIRST_EXPIRY = `select expires_at from holdfast_task indexed by holdfast_task_expiry where status = 'pending' and expires_at is not null order by expires_at limit 1`

/** Written as machine.claim writes it; the entry is the one that JSON.stringify would make. */
const LEASE = `
  update holdfast_task set
    status = 'running', revision = revision + 1, attempts = attempts + 1, updated_at = ?1, started_at = ?1,
    lease_token = ?2 || '.' || key, lease_worker = ?3, lease_claimed_at = ?1, lease_expires_at = ?4,
    history = history || ',{"n":' || (revision + 1) || ',"at":' || ?1 || ',"move":"claim","to":"running","by":' || ?5 || ',"op":' || ?7 || '.' || key || '"}'
  where key in (select value from json_each(?6))`

/** Read first and written after: RETURNING copies every row once more, and gives no order anyway. */
const BY_KEYS = `select ${CLAIMED_COLUMNS} from holdfast_task where key in (select value from json_each(?))`

/** The answer of a look that leases nothing: made without a transaction, so that an idle worker never takes the file's write lock. null: there is something to lease. */
export const idleLook = (db: DatabaseSync, want: Want, now: Instant): LookRows | null => {
  const { keys, later } = new Ready(db, want.queue, want.types, now).keys(1)
  if (keys.length > 0 && want.limit > 0) return null
  return { now, leased: null, due: dueRows(db, want, now), next: nextLook(db, later) }
}

export const claimRows = (db: DatabaseSync, want: Want, now: Instant, tally: Tally): LookRows => {
  if (want.limit === 0) return idleLook(db, want, now)!
  const { keys, later } = new Ready(db, want.queue, want.types, now).keys(want.limit)
  const leased = keys.length === 0 ? null : packClaimed(lease(db, want, now, keys))
  tally.add(want.queue, 'pending', -keys.length)
  tally.add(want.queue, 'running', keys.length)
  return { now, leased, due: dueRows(db, want, now), next: nextLook(db, later) }
}

const KEY_AT = 0

const lease = (db: DatabaseSync, { op, workerId, leaseTtl }: Want, now: Instant, keys: readonly number[]): Row[] => {
  const list = JSON.stringify(keys)
  const rows = prepared(db, BY_KEYS).all(list) as unknown as Row[]
  prepared(db, LEASE).run(now, op, workerId, now + leaseTtl, JSON.stringify(workerId), list, openQuoted(op))
  const byKey = new Map(rows.map((row) => [row[KEY_AT] as number, row]))
  return keys.map((key) => byKey.get(key)!)
}

/** As JSON, still open at its end: the token is the op and what follows it. */
const openQuoted = (text: string): string => JSON.stringify(text).slice(0, -1)

const dueRows = (db: DatabaseSync, { dueLimit }: Want, now: Instant): Row[] => {
  if (dueLimit === 0) return []
  const lapsed = prepared(db, LAPSED).all(now, dueLimit) as unknown as Row[]
  const expired =
    lapsed.length < dueLimit ? (prepared(db, EXPIRED).all(now, dueLimit - lapsed.length) as unknown as Row[]) : []
  return [...lapsed, ...expired]
}

const nextLook = (db: DatabaseSync, later: Instant | null): Instant | null =>
  earlier(earlier(later, one(db, FIRST_LAPSE)), one(db, FIRST_EXPIRY))
