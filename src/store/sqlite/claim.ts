/** One look at a queue: lease what is ready, report what is overdue, say when to look again. */
import type { DatabaseSync } from 'node:sqlite'
import type { Instant } from '../../core/task.ts'
import { COLUMNS, type Row } from '../sql/rows.ts'
import type { Want } from '../store.ts'
import { CLAIMED_COLUMNS, type Claimed, packClaimed } from './claimed.ts'
import { prepared } from './connection.ts'
import type { Tally } from './counts.ts'

export interface LookRows {
  readonly now: Instant
  readonly leased: Claimed | null
  readonly due: Row[]
  readonly next: Instant | null
}

/** Where a candidate stands in the queue. */
type Candidate = [key: number, availableAt: Instant, id: string]

const READY = `from holdfast_task indexed by holdfast_task_ready where status = 'pending' and queue = ? and type = ? and expiring = ?`
const TOP_LEVEL = `select priority ${READY} order by priority desc limit 1`
const NEXT_LEVEL = `select priority ${READY} and priority < ? order by priority desc limit 1`
const CANDIDATES = `select key, available_at, id ${READY} and priority = ? and available_at <= ? and (expires_at is null or expires_at > ?) order by available_at, id limit ?`
const LATER = `select available_at ${READY} and priority = ? and available_at > ? order by available_at limit 1`
const LIVE = `select 1 from holdfast_task indexed by holdfast_task_live where status = 'pending' and queue = ? and type = ? and priority = ? and expires_at > ? limit 1`
const FIRST_TYPE = `select type from holdfast_task indexed by holdfast_task_ready where status = 'pending' and queue = ? order by type limit 1`
const NEXT_TYPE = `select type from holdfast_task indexed by holdfast_task_ready where status = 'pending' and queue = ? and type > ? order by type limit 1`

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

/** One line in front of a worker: the tasks of one type that may expire, or that may not, at its next priority. */
interface Line {
  readonly type: string
  readonly expiring: 0 | 1
  priority: number
}

/** Walks only what can be claimed: types that are handled, one priority after the other, what is due in each. */
class Ready {
  readonly #db: DatabaseSync
  readonly #queue: string
  readonly #now: Instant
  #lines: Line[] = []

  constructor(db: DatabaseSync, { queue, types }: Want, now: Instant) {
    this.#db = db
    this.#queue = queue
    this.#now = now
    for (const type of new Set(types ?? pendingTypes(db, queue))) {
      for (const expiring of [0, 1] as const) {
        const priority = one<number>(db, TOP_LEVEL, queue, type, expiring)
        if (priority !== undefined) this.#lines.push({ type, expiring, priority })
      }
    }
  }

  /** Keys of the first `limit` tasks, and the next instant at which one more becomes available. */
  keys(limit: number): { keys: number[]; later: Instant | null } {
    const keys: number[] = []
    let later: Instant | null = null
    while (this.#lines.length > 0 && keys.length < limit) {
      const level = Math.max(...this.#lines.map(({ priority }) => priority))
      const lines = this.#lines.filter(({ priority }) => priority === level)
      for (const [key] of this.#first(lines, limit - keys.length)) keys.push(key)
      if (keys.length < limit) for (const line of lines) later = earlier(later, this.#later(line))
      for (const line of lines) this.#down(line)
    }
    return { keys, later }
  }

  #first(lines: readonly Line[], limit: number): Candidate[] {
    const found = lines.map((line) => this.#candidates(line, limit))
    return found.length === 1 ? found[0]! : found.flat().sort(byTurn).slice(0, limit)
  }

  #candidates({ type, expiring, priority }: Line, limit: number): Candidate[] {
    const [queue, now] = [this.#queue, this.#now]
    if (expiring === 1 && one(this.#db, LIVE, queue, type, priority, now) === undefined) return []
    return prepared(this.#db, CANDIDATES).all(
      queue,
      type,
      expiring,
      priority,
      now,
      now,
      limit,
    ) as unknown as Candidate[]
  }

  #later({ type, expiring, priority }: Line): Instant | undefined {
    return one(this.#db, LATER, this.#queue, type, expiring, priority, this.#now)
  }

  #down(line: Line): void {
    const below = one<number>(this.#db, NEXT_LEVEL, this.#queue, line.type, line.expiring, line.priority)
    if (below === undefined) this.#lines = this.#lines.filter((other) => other !== line)
    else line.priority = below
  }
}

const pendingTypes = (db: DatabaseSync, queue: string): string[] => {
  const types: string[] = []
  for (
    let type = one<string>(db, FIRST_TYPE, queue);
    type !== undefined;
    type = one<string>(db, NEXT_TYPE, queue, type)
  )
    types.push(type)
  return types
}

const byTurn = (a: Candidate, b: Candidate): number => a[1] - b[1] || (a[2] < b[2] ? -1 : 1)

const one = <T>(db: DatabaseSync, sql: string, ...values: (string | number)[]): T | undefined =>
  (prepared(db, sql).get(...values) as unknown as [T] | undefined)?.[0]

const earlier = (a: Instant | null, b: Instant | undefined): Instant | null =>
  b === undefined ? a : a === null ? b : Math.min(a, b)

/** Whether a claim would have to write: asked first, so that an idle worker never takes the file's write lock. */
export const hasReady = (db: DatabaseSync, want: Want, now: Instant): boolean =>
  want.limit > 0 && new Ready(db, want, now).keys(1).keys.length > 0

/** Without leasing anything. */
export const lookOnly = (db: DatabaseSync, want: Want, now: Instant): LookRows => {
  const { later } = new Ready(db, want, now).keys(1)
  return { now, leased: null, due: dueRows(db, want, now), next: nextLook(db, later) }
}

export const claimRows = (db: DatabaseSync, want: Want, now: Instant, tally: Tally): LookRows => {
  if (want.limit === 0) return lookOnly(db, want, now)
  const { keys, later } = new Ready(db, want, now).keys(want.limit)
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
