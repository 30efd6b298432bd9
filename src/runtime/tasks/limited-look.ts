/** A look at a queue within its limits: permits first, then a claim with numbers and groups, then what this process remembers of it. */

import { runsOf } from '../../core/full-groups.ts'
import { type GroupRange, type GroupTurns, groupOf } from '../../core/group-turns.ts'
import { type QueueRates, ratesOf } from '../../core/limits.ts'
import { type Rate, type RateInForce, validityOf } from '../../core/rate.ts'
import type { Instant } from '../../core/task.ts'
import type { Session } from '../session.ts'
import type { Limits } from './limits.ts'
import { type Looked, type LookFor, look } from './look.ts'
import { groupRate, PermitBook, type Permits, queueRate } from './permits.ts'

/** That a group is full is remembered for this long. */
const FULL_FOR = 100

interface Memory {
  /** The group that had the last turn. */
  after: string | null
  full: readonly { readonly groups: ReadonlySet<string>; readonly range: GroupRange; readonly until: number }[]
}

export interface LimitedLook extends Omit<LookFor, 'id' | 'limits'> {
  /** Only this task. */
  readonly one?: { readonly id: string; readonly group: string | null }

  /** More is asked for than there are free slots: then one task of each group at the most. */
  readonly isAhead: boolean
  /** Groups of tasks that are held and not started. */
  readonly unstarted: readonly string[]
}

const UNBOUND: QueueRates = { queue: null, group: null, burst: 1 }

export class LimitedLooks {
  readonly #session: Session
  readonly #limits: Limits
  readonly #memories = new Map<string, Memory>()
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
    const reserved = await this.#reserve(queueRate(queue), rates.queue, rates.burst, want.limit)
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
    if (turns !== null) this.#remember(queue, turns, found)
    // Not after an error: what was claimed before a reply was lost has used its permits.
    await reserved?.return(limit - found.leased.length)
    await groups?.returnUnused(found)
    const now = this.#session.time.now()
    const held = found.isHeldBack ? now + this.#probeEvery : null
    const permits = [reserved?.next, ...(groups?.next ?? [])].filter((at) => at !== undefined && at > now)
    return { ...found, next: earliest([found.next, held, ...permits]) }
  }

  /** A task of this queue has ended here: its group has a place again. */
  ended(queue: string, group: string | null): void {
    const memory = this.#memories.get(queue)
    if (memory === undefined || group === null) return
    memory.full = memory.full.filter(({ groups }) => !groups.has(group))
  }

  /** How soon a look is worth while for what a limit holds back: other processes end tasks without a word. */
  get #probeEvery(): number {
    return this.#session.store.leaseTtl / 50
  }

  rateInForce(rate: Rate, burst: number): RateInForce {
    return { rate, burst, validity: validityOf(rate, this.#session.store.leaseTtl) }
  }

  async #reserve(name: string, rate: Rate | null, burst: number, wanted: number): Promise<Permits | null> {
    if (rate === null || wanted === 0) return null
    return this.permits.reserve(name, wanted, this.rateInForce(rate, burst))
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
    const reserved = await Promise.all(
      wanted.map(async (group): Promise<[string, Permits]> => {
        const permits = await this.#reserve(groupRate(queue, group), rates.group, rates.burst, mostEach)
        return [group, permits!]
      }),
    )
    return groupPermits(new Map(reserved))
  }
}

/** Nothing can be claimed, but what is overdue must be moved all the same. */
const withoutPermits = async (session: Session, want: LookFor, next: Instant): Promise<Looked> => {
  if (want.withDue !== false) return { ...(await look(session, { ...want, limit: 0 })), next }
  want.deliver?.([])
  return { leased: [], due: [], next, moreDue: false, leftAlone: 0 }
}

interface GroupPermits {
  readonly only: ReadonlyMap<string, number>
  readonly notAfter: readonly Instant[]
  /** When each group that waits has another permit. */
  readonly next: readonly Instant[]
  returnUnused(found: Looked): Promise<void>
}

const groupPermits = (reserved: ReadonlyMap<string, Permits>): GroupPermits => {
  const granted = [...reserved].filter(([, { count }]) => count > 0)
  return {
    only: new Map(granted.map(([group, { count }]) => [group, count])),
    notAfter: granted.map(([, { notAfter }]) => notAfter),
    next: [...reserved.values()].map(({ next }) => next),
    returnUnused: async ({ leased }) => {
      const used = leased.map(groupOf)
      await Promise.all(
        granted.map(([group, permits]) => permits.return(permits.count - used.filter((one) => one === group).length)),
      )
    },
  }
}

const earliest = (instants: readonly (Instant | null | undefined)[]): Instant | null => {
  const known = instants.filter((instant) => instant !== null && instant !== undefined)
  return known.length === 0 ? null : Math.min(...known)
}
