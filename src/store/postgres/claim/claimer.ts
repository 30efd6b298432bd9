/** One look at a queue: leases ready tasks, reports overdue ones, and says when to look again. */

import { claimOrder } from '../../../core/claim-order.ts'
import type { Instant, TaskRecord } from '../../../core/task.ts'
import { COLUMNS, decodeWhole, type Row } from '../../sql/rows.ts'
import type { ClaimRequest, ClaimResult, GroupsRequest } from '../../store.ts'
import type { Executor, Value } from '../connection.ts'
import { lineOf } from '../migrations/5-levels.ts'
import { type Called, decodeCall, ENDED, mostAtOnce } from './called.ts'
import { claimValues, levelValues } from './claim-values.ts'
import { ClaimCursors } from './cursors.ts'
import { CappedCalls, isBound } from './limits.ts'
import { ClaimPace } from './pace.ts'
import { SlowDue, SlowLooks } from './slow-looks.ts'
import { ClaimsInTurns } from './turns.ts'
import { WaitingTypes } from './waiting-types.ts'

/** The server's clock, read once per statement, or the instant passed as $1. */
export const CLOCK = `clock as materialized (select coalesce($1::bigint, floor(extract(epoch from clock_timestamp()) * 1000)::bigint) as now)`

export const readClock = async (executor: Pick<Executor, 'query'>): Promise<{ at: Instant; uncertainty: number }> => {
  const [row] = await executor.query(`with ${CLOCK} select now from clock`, [null])
  return { at: row![0] as Instant, uncertainty: 1 }
}

/** Also for bench/depth.ts, which shows its plan. */
export const claimText = (schema: string): string =>
  `select c.*, ${ENDED} from ${schema}.claim_in_order($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) c`

/** Whether anything is due at these levels. If nothing is, the function would search from the front for the next due time. */
const probeText = (schema: string): string => `
  with clock as materialized (select ${ENDED} as now)
  select c.now, (
    select true from unnest($2::text[], $3::integer[], $4::integer[], $5::bigint[]) l(type, line, priority, begins) cross join lateral (
      select 1 from ${schema}.task t
      where t.status = 'pending' and t.queue = $1 and t.type = l.type and ${lineOf('t.')} = l.line and t.priority = l.priority
        and t.available_at >= l.begins and t.available_at <= c.now and (t.expires_at is null or t.expires_at > c.now)
      order by t.available_at limit 1
    ) x limit 1
  ) from clock c`

/**
 * `lockable` writes nothing, but it waits where writes wait (CREATE INDEX, LOCK TABLE) and is refused where they are refused. Where no worker can
 * renew, living workers must not look dead only because the table can still be read.
 */
const dueText = (schema: string): string => `
  with ${CLOCK}, lockable as (update ${schema}.task set priority = priority where false)
  (select ${COLUMNS} from ${schema}.task where status = 'running' and lease_expires_at > $3 and lease_expires_at <= (select now from clock) order by lease_expires_at limit $2)
  union all
  (select ${COLUMNS} from ${schema}.task where status = 'pending' and expires_at > $3 and expires_at <= (select now from clock) order by expires_at limit $2)
  limit $2`

type Leased = Omit<ClaimResult, 'due'>

export class Claimer {
  readonly #executor: Executor
  readonly #claim: string
  readonly #due: string
  readonly #probe: string
  readonly #cursors = new ClaimCursors()
  readonly #types: WaitingTypes
  readonly #slow = new SlowLooks()
  readonly #slowDue = new SlowDue()
  readonly #capped: CappedCalls
  readonly #turns: ClaimsInTurns
  readonly #pace = new ClaimPace()
  /** How far the server's clock is ahead of the monotonic one; null until it is known. */
  #offset: number | null = null
  /** The most tasks in one claim, derived from the payload sizes of the last one. */
  #most = Number.POSITIVE_INFINITY

  /** A claim under limits waits for others of its queue for at most `patience` milliseconds. */
  constructor(executor: Executor, schema: string, patience = 10_000) {
    this.#executor = executor
    this.#claim = claimText(schema)
    this.#due = dueText(schema)
    this.#probe = probeText(schema)
    this.#types = new WaitingTypes(executor, schema)
    this.#capped = new CappedCalls(executor, schema, patience)
    this.#turns = new ClaimsInTurns(executor, schema, patience)
  }

  async look(want: ClaimRequest): Promise<ClaimResult> {
    // A task that is named is found by its id, whatever its type.
    const lease = want.types === null && want.id === undefined ? this.#leaseOfAny(want) : this.#lease(want)
    const [leased, due] = await Promise.all([lease, this.#findDue(want)])
    return { ...leased, due }
  }

  async #leaseOfAny(want: ClaimRequest): Promise<Leased> {
    const window = await this.#types.next(want.queue)
    const found = await this.#lease({ ...want, types: window.types })
    const isFound = found.leased.length > 0
    const next = window.turnOver(isFound ? null : found.next, this.#now(want))
    return { ...found, next: isFound ? found.next : next }
  }

  async waitingGroups(request: GroupsRequest): Promise<readonly string[]> {
    if (request.types !== null) return this.#turns.waitingGroups(request, request.types)
    const window = await this.#types.next(request.queue)
    window.turnOver(null, this.#now(request))
    return this.#turns.waitingGroups(request, window.types)
  }

  #now({ now }: { readonly now: Instant | null }): Instant {
    return now ?? Math.floor(performance.now() + (this.#offset ?? 0))
  }

  /** A second claim beside the first would cost more than it gains. */
  get isCongested(): boolean {
    return this.#pace.isSlowed
  }

  /** This process made tasks ready: the next claim looks from the front, or at the levels of these tasks. */
  startOver(inserted: readonly TaskRecord[] | null = null): void {
    this.#cursors.forget()
    if (inserted === null) this.#slow.changed()
    else this.#slow.inserted(inserted)
  }

  #lease(asked: ClaimRequest): Promise<Leased> {
    const want = { ...asked, limit: Math.min(asked.limit, this.#most) }
    if (want.id !== undefined || (want.limits?.turns ?? null) !== null) return this.#leaseInTurns(want)
    return this.#leaseInOrder(want)
  }

  async #leaseInTurns(want: ClaimRequest): Promise<Leased> {
    const { called, ...result } = await this.#turns.lease(want)
    this.#ended(want, called)
    return result
  }

  async #leaseInOrder(want: ClaimRequest): Promise<Leased> {
    const progress = this.#cursors.begin(want)
    const isLimited = isBound(want)
    const isFront = progress.levels === null && want.now === null
    // What is held back is told by a look at everything.
    const behind = isFront && !isLimited && want.limit > 0 ? this.#slow.begin(want) : null
    if (behind !== null) return this.#leaseBehind(want, behind)
    const values = [...claimValues(want), ...levelValues(progress.levels)]
    const called = isLimited ? await this.#capped.call(want, values) : await this.#call(want, values)
    this.#ended(want, called)
    const { leased, now, took, next, levels, isHeldBack } = called
    progress.end(leased.sort(claimOrder), progress.levels ?? levels)
    if (isFront && !isLimited) this.#slow.ended(want, { leased, now, front: { cost: took, levels, next } })
    // A claim that leased something may have left more, and a claim that resumed has not looked everywhere: look again at once.
    const isDone = isLimited ? leased.length < want.limit : leased.length === 0 && progress.levels === null
    return { leased, next: isDone ? next : now, ...(isLimited ? { isHeldBack } : null) }
  }

  /** Used while looks from the front are slow: looks only at the known levels. */
  async #leaseBehind(
    want: ClaimRequest,
    { levels, next }: NonNullable<ReturnType<SlowLooks['begin']>>,
  ): Promise<Leased> {
    const { types, lines, priorities, begins } = levels
    const [probed] = await this.#executor.query(this.#probe, [want.queue, types, lines, priorities, begins])
    const [at, isDue] = probed as [Instant, boolean | null]
    if (isDue === null) {
      this.#slow.ended(want, { leased: [], now: at })
      return { leased: [], next: next(at) }
    }
    // Without types, so that a claim that comes too late does not search every level for the next due time.
    const called = await this.#call(want, [...claimValues({ ...want, types: [] }), ...levelValues(levels)])
    const { leased, now } = called
    this.#ended(want, called)
    leased.sort(claimOrder)
    this.#slow.ended(want, { leased, now })
    return { leased, next: leased.length > 0 ? now : next(now) }
  }

  async #call(want: ClaimRequest, values: readonly Value[]): Promise<Called> {
    return decodeCall(await this.#executor.query(this.#claim, values), want)
  }

  #ended(want: ClaimRequest, { leased, now, took }: Called): void {
    if (want.now === null) this.#offset = now - performance.now()
    this.#pace.claimed(leased.length, took)
    if (leased.length > 0) this.#most = mostAtOnce(leased)
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
