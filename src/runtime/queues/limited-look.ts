/** A look at a queue within its limits: permits first, then a claim with numbers and groups, then what this process remembers of it. */

import { runsOf } from '../../core/flow/full-groups.ts'
import { type GroupRange, type GroupTurns, groupOf } from '../../core/flow/group-turns.ts'
import { type QueueRates, ratesOf } from '../../core/flow/limits.ts'
import { LATEST, type Rate, type RateInForce, slackOf } from '../../core/flow/rate.ts'
import type { Instant, TaskRecord } from '../../core/task.ts'
import type { Session } from '../session.ts'
import type { Limits } from './limits.ts'
import { type Looked, type LookFor, look } from './look.ts'
import { groupRate, PermitBook, type Permits, queueRate } from './permits.ts'

/** How long a full group is remembered as full. */
const FULL_FOR = 100
/** The slowest of this many looks estimates the next one. */
const LOOKS = 4
/** The shortest validity of permits. */
const SHORTEST = 1_000

interface Memory {
  /** The group that had the last turn. */
  after: string | null
  full: readonly { readonly groups: ReadonlySet<string>; readonly range: GroupRange; readonly until: number }[]
}

export interface LimitedLook extends Omit<LookFor, 'id' | 'limits'> {
  /** Only this task. */
  readonly one?: { readonly id: string; readonly group: string | null }

  /** The look asks for more tasks than there are free slots, and gets at most one task of each group. */
  readonly isAhead: boolean
  /** Groups of tasks that are held and not started. */
  readonly unstarted: readonly string[]
}

const UNBOUND: QueueRates = { queue: null, group: null, burst: 1 }

export class LimitedLooks {
  readonly #session: Session
  readonly #limits: Limits
  readonly #memories = new Map<string, Memory>()
  /** How long the last looks with permits took, by queue. */
  readonly #looks = new Map<string, readonly number[]>()
  readonly permits: PermitBook

  constructor(session: Session, limits: Limits) {
    this.#session = session
    this.#limits = limits
    this.permits = new PermitBook(session)
  }

  /** As `look` for a queue that is not bound. `session` may be that of one call, which can be aborted. */
  async look({ isAhead, unstarted, one, ...wanted }: LimitedLook, session = this.#session): Promise<Looked> {
    const want: LookFor = one === undefined ? wanted : { ...wanted, id: one.id }
    const { queue } = want
    if (!this.#limits.isBound(queue)) return look(session, want)
    const limits = this.#limits.of(queue)
    const rates = limits === null ? UNBOUND : ratesOf(limits)
    const begun = this.#session.clock.mono()
    const reserved =
      rates.queue === null || want.limit === 0
        ? null
        : await this.permits.reserve(queueRate(queue), want.limit, this.rateInForce(queue, rates.queue, rates.burst))
    if (reserved?.count === 0) return withoutPermits(session, want, reserved.next)
    const limit = reserved?.count ?? want.limit
    const turns = this.#turnsOf(queue, isAhead ? 1 : limit, unstarted)
    const groups = rates.group === null ? null : await this.#reserveGroups({ ...want, limit }, turns!, rates, one)
    const found = await look(session, {
      ...want,
      limit,
      limits: {
        concurrency: limits?.concurrency ?? null,
        notAfter: earliest([reserved?.notAfter, ...(groups?.notAfter ?? [])]),
        turns: turns === null || groups === null ? turns : { ...turns, only: groups.only },
      },
    })
    if (reserved !== null || groups !== null) this.#took(queue, this.#session.clock.mono() - begun)
    if (turns !== null) this.#remember(queue, turns, found)
    // Not after an error: tasks that were claimed before the reply was lost have used their permits.
    const nextPermits = await Promise.all([reserved?.settle(found.leased.map(startOf)), groups?.settle(found)])
    const now = this.#session.time.now()
    const held = found.isHeldBack ? now + this.#probeEvery : null
    const permits = nextPermits.flat().filter((at) => at != null && at > now)
    return { ...found, next: earliest([found.next, held, ...permits]) }
  }

  /** A task of this queue has ended here: its group has a place again. */
  ended(queue: string, group: string | null): void {
    const memory = this.#memories.get(queue)
    if (memory === undefined || group === null) return
    memory.full = memory.full.filter(({ groups }) => !groups.has(group))
  }

  /** How soon to look again for tasks that a limit holds back: other processes do not announce that their tasks have ended. */
  get #probeEvery(): number {
    return this.#session.store.leaseTtl / 50
  }

  rateInForce(queue: string, rate: Rate, burst: number): RateInForce {
    const { leaseTtl } = this.#session.store
    const looks = this.#looks.get(queue)
    const slowest = looks === undefined ? 0 : Math.max(...looks)
    return {
      rate,
      burst,
      slack: slackOf(rate, leaseTtl) + 2 * slowest,
      validity:
        looks === undefined ? leaseTtl : Math.min(LATEST, Math.max(SHORTEST, Math.ceil(leaseTtl / 5), 2 * slowest)),
    }
  }

  /** Permits must outlast a claim, however slow claims are just now. */
  #took(queue: string, duration: number): void {
    this.#looks.set(queue, [Math.ceil(duration), ...(this.#looks.get(queue) ?? [])].slice(0, LOOKS))
  }

  #turnsOf(queue: string, mostEach: number, unstarted: readonly string[]): GroupTurns | null {
    if (!this.#limits.hasTurns(queue)) return null
    const memory = this.#memoryOf(queue)
    const now = this.#session.clock.mono()
    memory.full = memory.full.filter(({ until }) => until > now)
    return {
      perGroup: this.#limits.of(queue)?.perGroup ?? null,
      after: memory.after,
      mostEach,
      without: [...this.#limits.pausedGroups(queue).keys(), ...unstarted],
      only: null,
      passed: memory.full.map(({ range }) => range),
    }
  }

  #memoryOf(queue: string): Memory {
    const memory = this.#memories.get(queue) ?? { after: null, full: [] }
    this.#memories.set(queue, memory)
    return memory
  }

  #remember(queue: string, { after }: GroupTurns, { leased, full = [] }: Looked): void {
    const memory = this.#memoryOf(queue)
    const taken = leased.map(groupOf)
    const until = this.#session.clock.mono() + FULL_FOR
    const runs = runsOf(full, taken, after).map((run) => ({
      groups: new Set(run),
      range: { first: run[0]!, last: run.at(-1)! },
      until,
    }))
    memory.full = [...memory.full, ...runs]
    memory.after = taken.at(-1) ?? memory.after
  }

  async #reserveGroups(
    want: LookFor,
    { after, without, mostEach }: GroupTurns,
    rates: QueueRates,
    one: LimitedLook['one'],
  ): Promise<GroupPermits> {
    const { queue, types, limit } = want
    const asked = { queue, types, after, limit: limit + without.length, now: null }
    const waiting =
      one !== undefined ? [one.group].flatMap((group) => group ?? []) : await this.#session.store.waitingGroups!(asked)
    const wanted = waiting.filter((group) => !without.includes(group)).slice(0, limit)
    const inForce = this.rateInForce(queue, rates.group!, rates.burst)
    const reserved = await Promise.all(
      wanted.map(async (group): Promise<[string, Permits]> => {
        return [group, await this.permits.reserve(groupRate(queue, group), mostEach, inForce)]
      }),
    )
    return groupPermits(new Map(reserved))
  }
}

/** Nothing can be claimed, but overdue tasks must still be moved. */
const withoutPermits = async (session: Session, want: LookFor, next: Instant): Promise<Looked> => {
  if (want.withDue !== false) return { ...(await look(session, { ...want, limit: 0 })), next }
  want.deliver?.([])
  return { leased: [], due: [], next, moreDue: false, leftAlone: 0, isOfPermits: true }
}

interface GroupPermits {
  readonly only: ReadonlyMap<string, number>
  readonly notAfter: readonly Instant[]
  /** Returns when each group that waits has another permit. */
  settle(found: Looked): Promise<readonly (Instant | null)[]>
}

const groupPermits = (reserved: ReadonlyMap<string, Permits>): GroupPermits => {
  const granted = [...reserved].filter(([, { count }]) => count > 0)
  return {
    only: new Map(granted.map(([group, { count }]) => [group, count])),
    notAfter: granted.map(([, { notAfter }]) => notAfter),
    settle: ({ leased }) =>
      Promise.all(
        [...reserved].map(([group, permits]) =>
          permits.settle(leased.filter((task) => groupOf(task) === group).map(startOf)),
        ),
      ),
  }
}

const startOf = ({ lease, updatedAt }: TaskRecord): Instant => lease?.claimedAt ?? updatedAt

const earliest = (instants: readonly (Instant | null | undefined)[]): Instant | null => {
  const known = instants.filter((instant) => instant !== null && instant !== undefined)
  return known.length === 0 ? null : Math.min(...known)
}
