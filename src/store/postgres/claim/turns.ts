/** Claims in turns of groups, and claims of one task by its id. */
import { claimOrder } from '../../../core/claim-order.ts'
import { type GroupTurns, permitted, UNLIMITED } from '../../../core/flow/group-turns.ts'
import type { TaskRecord } from '../../../core/task.ts'
import type { ClaimRequest, ClaimResult, GroupsRequest } from '../../store.ts'
import type { Executor } from '../connection.ts'
import type { Called, Cut } from './called.ts'
import { claimValues } from './claim-values.ts'
import { LimitedCalls } from './limits.ts'

const MOST = 2_147_483_647

/** For a claim by id in a queue whose groups have no limits. */
const UNBOUND: GroupTurns = { perGroup: null, after: null, mostEach: MOST, without: [], only: null, passed: [] }

/** For how many queues a claim that was cut is remembered. */
const MOST_CUT = 1_000

interface Resumed {
  /** The cursor of the request: with another one, a new round begins. */
  readonly after: string | null
  readonly cut: Cut
}

export class ClaimsInTurns {
  readonly #executor: Executor
  readonly #calls: LimitedCalls
  readonly #patience: string
  readonly #groups: string
  /** Where the last claim of a queue ended early: the next one goes on there, so that every group is reached. */
  readonly #cuts = new Map<string, Resumed>()

  constructor(executor: Executor, schema: string, patience: number) {
    this.#executor = executor
    this.#calls = new LimitedCalls(executor, schema, 'claim_in_turns', 22)
    this.#patience = String(patience)
    this.#groups = `select g.task_group from ${schema}.waiting_groups($1, $2, $3, $4, $5) g`
  }

  async lease(want: ClaimRequest): Promise<Omit<ClaimResult, 'due'> & { readonly called: Called }> {
    const { concurrency, notAfter, turns } = want.limits ?? UNLIMITED
    const { perGroup, after, mostEach, without, only, passed } = turns ?? UNBOUND
    const key = JSON.stringify([want.queue, want.types])
    const resumed = this.#cuts.get(key)
    const from = resumed !== undefined && resumed.after === after && want.id === undefined ? resumed.cut : null
    const called = await this.#calls.call(want, [
      ...claimValues(want),
      concurrency,
      notAfter,
      this.#patience,
      want.id ?? null,
      perGroup,
      after,
      Math.min(mostEach, MOST),
      without,
      only === null ? null : [...only.keys()],
      only === null ? null : [...only.values()].map((n) => Math.min(n, MOST)),
      passed.map(({ first }) => first),
      passed.map(({ last }) => last),
      from?.priority ?? null,
      from?.group ?? null,
    ])
    const { leased, now, next, full = [], isHeldBack = false, isContested = false, cut = null } = called
    if (want.id === undefined) this.#remember(key, cut === null ? null : { after, cut })
    const isDone = leased.length < want.limit && !isContested && cut === null
    const inTurn = turns === null ? leased : inTurns(leased, from?.group ?? after)
    return { leased: inTurn, next: isDone ? next : now, full, isHeldBack, called }
  }

  #remember(key: string, resumed: Resumed | null): void {
    if (resumed === null) this.#cuts.delete(key)
    else if (this.#cuts.has(key) || this.#cuts.size < MOST_CUT) this.#cuts.set(key, resumed)
  }

  async waitingGroups(
    { queue, after, limit, now }: GroupsRequest,
    types: readonly string[],
  ): Promise<readonly string[]> {
    const rows = await this.#executor.query(this.#groups, [now, queue, types, after, limit])
    return rows.map(([group]) => group as string)
  }
}

/** The server chose them by their turns, and returned them in any order. */
const inTurns = (leased: readonly TaskRecord[], after: string | null): readonly TaskRecord[] => {
  const turns = { ...UNBOUND, after }
  return permitted([...leased].sort(claimOrder), [], { ...UNLIMITED, turns }, leased.length, 0).tasks
}
