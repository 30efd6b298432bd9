/** One look at a queue: leases ready tasks, reports overdue ones, and says when to look again. */

import { claimOrder } from '../../../core/claim-order.ts'
import { PAGE_WEIGHT, weightOf } from '../../../core/page-weight.ts'
import type { Instant, TaskRecord } from '../../../core/task.ts'
import { decodeClaimed } from '../../sql/claimed.ts'
import { COLUMNS, decodeWhole, type Row } from '../../sql/rows.ts'
import type { ClaimRequest, ClaimResult } from '../../store.ts'
import type { Executor, PgRow, Value } from '../connection.ts'
import { ClaimCursors, type Levels } from './cursors.ts'
import { SlowDue, SlowLooks } from './slow-looks.ts'
import { WaitingTypes } from './waiting-types.ts'

/** The server's clock, read once per statement, or the instant passed as $1. */
export const CLOCK = `clock as materialized (select coalesce($1::bigint, floor(extract(epoch from clock_timestamp()) * 1000)::bigint) as now)`

export const readClock = async (executor: Pick<Executor, 'query'>): Promise<{ at: Instant; uncertainty: number }> => {
  const [row] = await executor.query(`with ${CLOCK} select now from clock`, [null])
  return { at: row![0] as Instant, uncertainty: 1 }
}

/** Their positions in a row without a token. */
const NEXT_AT = 2
const LEVELS_AT = 15
/** The server's clock when the claim began and when it ended. The same in all rows. */
const NOW_AT = 17
const ENDED_AT = 18

const SERVER_NOW = 'floor(extract(epoch from clock_timestamp()) * 1000)::bigint'

/** Exported for bench/depth.ts, which shows its plan. */
export const claimText = (schema: string): string =>
  `select c.*, ${SERVER_NOW} from ${schema}.claim($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) c`

/** Whether anything is due at these levels. If nothing is, the function would search from the front for the next due time. */
const probeText = (schema: string): string => `
  with clock as materialized (select ${SERVER_NOW} as now)
  select c.now, (
    select true from unnest($2::text[], $3::boolean[], $4::integer[], $5::bigint[]) l(type, expiring, priority, begins) cross join lateral (
      select 1 from ${schema}.task t
      where t.status = 'pending' and t.queue = $1 and t.type = l.type and (t.expires_at is not null) = l.expiring and t.priority = l.priority
        and t.available_at >= l.begins and t.available_at <= c.now and (t.expires_at is null or t.expires_at > c.now)
      order by t.available_at limit 1
    ) x limit 1
  ) from clock c`

/**
 * `lockable` writes nothing, but waits where writes must wait (CREATE INDEX, LOCK TABLE) and is refused where they are refused. There nobody can
 * renew, and living workers must not look like dead ones only because the table can be read.
 */
const dueText = (schema: string): string => `
  with ${CLOCK}, lockable as (update ${schema}.task set priority = priority where false)
  (select ${COLUMNS} from ${schema}.task where status = 'running' and lease_expires_at > $3 and lease_expires_at <= (select now from clock) order by lease_expires_at limit $2)
  union all
  (select ${COLUMNS} from ${schema}.task where status = 'pending' and expires_at > $3 and expires_at <= (select now from clock) order by expires_at limit $2)
  limit $2`

/** The arguments in the order of the function's parameters. */
export const claimValues = (
  { queue, types, limit, workerId, op, leaseTtl, now }: ClaimRequest,
  levels: Levels | null,
): Value[] => [
  now,
  queue,
  types,
  limit,
  op,
  workerId,
  leaseTtl,
  // The history entry without the parts that differ from task to task.
  `,"move":"claim","to":"running","by":${JSON.stringify(workerId)},"op":${JSON.stringify(op).slice(0, -1)}`,
  levels?.types ?? null,
  levels?.expiring ?? null,
  levels?.priorities ?? null,
  levels?.begins ?? null,
]

interface Called {
  readonly leased: TaskRecord[]
  readonly now: Instant
  /** Milliseconds on the server. */
  readonly took: number
  readonly about: PgRow | null
}

export class Claimer {
  readonly #executor: Executor
  readonly #claim: string
  readonly #due: string
  readonly #probe: string
  readonly #cursors = new ClaimCursors()
  readonly #types: WaitingTypes
  readonly #slow = new SlowLooks()
  readonly #slowDue = new SlowDue()
  /** How far the server's clock is ahead of the monotonic one; null until it is known. */
  #offset: number | null = null
  /** The most tasks in one claim, derived from the payload sizes of the last one. */
  #most = Number.POSITIVE_INFINITY

  constructor(executor: Executor, schema: string) {
    this.#executor = executor
    this.#claim = claimText(schema)
    this.#due = dueText(schema)
    this.#probe = probeText(schema)
    this.#types = new WaitingTypes(executor, schema)
  }

  async look(want: ClaimRequest): Promise<ClaimResult> {
    const lease = want.types === null ? this.#leaseOfAny(want) : this.#lease(want)
    const [{ leased, next }, due] = await Promise.all([lease, this.#findDue(want)])
    return { leased, due, next }
  }

  async #leaseOfAny(want: ClaimRequest): Promise<Pick<ClaimResult, 'leased' | 'next'>> {
    const window = await this.#types.next(want.queue)
    const found = await this.#lease({ ...want, types: window.types })
    const isFound = found.leased.length > 0
    const now = want.now ?? Math.floor(performance.now() + (this.#offset ?? 0))
    const next = window.turnOver(isFound ? null : found.next, now)
    return { leased: found.leased, next: isFound ? found.next : next }
  }

  /** This process made tasks ready: the next claim looks from the front, or at the levels of these tasks. */
  startOver(inserted: readonly TaskRecord[] | null = null): void {
    this.#cursors.forget()
    if (inserted === null) this.#slow.changed()
    else this.#slow.inserted(inserted)
  }

  async #lease(asked: ClaimRequest): Promise<Pick<ClaimResult, 'leased' | 'next'>> {
    const want = { ...asked, limit: Math.min(asked.limit, this.#most) }
    const progress = this.#cursors.begin(want)
    const behind = progress.levels === null && want.now === null && want.limit > 0 ? this.#slow.begin(want) : null
    if (behind !== null) return this.#leaseBehind(want, behind)
    const { leased, now, took, about } = await this.#call(want, progress.levels)
    const told = (about?.[LEVELS_AT] ?? null) as string | null
    const found = told === null ? null : (JSON.parse(told) as Levels)
    progress.end(leased, progress.levels ?? found)
    const next = (about?.[NEXT_AT] ?? null) as Instant | null
    if (progress.levels === null && want.now === null)
      this.#slow.ended(want, { leased, now, front: { cost: took, levels: found, next } })
    // A claim that leased something may have left more, and a claim that resumed has not looked everywhere: look again at once.
    const isDone = leased.length === 0 && progress.levels === null
    return { leased, next: isDone ? next : now }
  }

  /** Used while looks from the front are slow: looks only at the known levels. */
  async #leaseBehind(
    want: ClaimRequest,
    { levels, next }: NonNullable<ReturnType<SlowLooks['begin']>>,
  ): Promise<Pick<ClaimResult, 'leased' | 'next'>> {
    const { types, expiring, priorities, begins } = levels
    const [probed] = await this.#executor.query(this.#probe, [want.queue, types, expiring, priorities, begins])
    const [at, isDue] = probed as [Instant, boolean | null]
    if (isDue === null) {
      this.#slow.ended(want, { leased: [], now: at })
      return { leased: [], next: next(at) }
    }
    // Without types, so that a claim that comes too late does not search every level for the next due time.
    const { leased, now } = await this.#call({ ...want, types: [] }, levels)
    this.#slow.ended(want, { leased, now })
    return { leased, next: leased.length > 0 ? now : next(now) }
  }

  async #call(want: ClaimRequest, levels: Levels | null): Promise<Called> {
    const { queue, workerId, op, leaseTtl } = want
    const rows = await this.#executor.query(this.#claim, claimValues(want, levels))
    const now = rows[0]![NOW_AT] as Instant
    const took = (rows[0]![ENDED_AT] as Instant) - now
    if (want.now === null) this.#offset = now - performance.now()
    // A last row without a token is not a task: it has the time of the next look, or the levels.
    const about = rows.at(-1)![0] === null ? rows.pop()! : null
    const leased: TaskRecord[] = []
    for (const row of rows) leased.push(decodeClaimed(row as Row, { queue, workerId, op, leaseTtl, now }))
    if (leased.length > 0) this.#most = mostAtOnce(leased)
    return { leased: leased.sort(claimOrder), now, took, about }
  }

  async #findDue({ dueLimit, now }: ClaimRequest): Promise<TaskRecord[]> {
    if (dueLimit === 0) return []
    const began = performance.now()
    const from = now === null ? this.#slowDue.begin(this.#offset) : null
    const rows = await this.#executor.query(this.#due, [now, dueLimit, from ?? Number.MIN_SAFE_INTEGER])
    if (from === null && now === null) this.#slowDue.ended(began)
    return rows.map((row) => decodeWhole(row as Row))
  }
}

const mostAtOnce = (leased: readonly TaskRecord[]): number => {
  const weight = leased.reduce((sum, task) => sum + weightOf(task), 0)
  return Math.max(1, Math.floor((PAGE_WEIGHT * leased.length) / Math.max(1, weight)))
}
