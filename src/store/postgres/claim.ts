/** One look at a queue: lease what is ready, report what is overdue, say when to look again. */
import type { Instant, TaskRecord } from '../../core/task.ts'
import { byTurn } from '../../core/turn.ts'
import { decodeClaimed } from '../sql/claimed.ts'
import { COLUMNS, decodeWhole, type Row } from '../sql/rows.ts'
import type { Look, Want } from '../store.ts'
import { ClaimCursors, type Levels } from './claim-cursors.ts'
import type { Executor, Value } from './connection.ts'

/** The store's own clock, read once per statement, or the instant given as $1. */
export const CLOCK = `clock as materialized (select coalesce($1::bigint, floor(extract(epoch from clock_timestamp()) * 1000)::bigint) as now)`

/** Where they stand in a row without a token. */
const NEXT_AT = 2
const LEVELS_AT = 15

/** Also for bench/depth.ts, which shows its plan. */
export const claimText = (schema: string): string =>
  `select * from ${schema}.claim($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`

const dueText = (schema: string): string => `
  with ${CLOCK}
  (select ${COLUMNS} from ${schema}.task where status = 'running' and lease_expires_at <= (select now from clock) order by lease_expires_at limit $2)
  union all
  (select ${COLUMNS} from ${schema}.task where status = 'pending' and expires_at <= (select now from clock) order by expires_at limit $2)
  limit $2`

/** As the function takes them. */
export const claimValues = (
  { queue, types, limit, workerId, op, leaseTtl, now }: Want,
  levels: Levels | null,
): Value[] => [
  now,
  queue,
  types,
  limit,
  op,
  workerId,
  leaseTtl,
  // The history's entry, but for what differs from task to task.
  `,"move":"claim","to":"running","by":${JSON.stringify(workerId)},"op":${JSON.stringify(op).slice(0, -1)}`,
  levels?.types ?? null,
  levels?.expiring ?? null,
  levels?.priorities ?? null,
  levels?.begins ?? null,
]

export class Claimer {
  readonly #executor: Executor
  readonly #claim: string
  readonly #due: string
  readonly #cursors = new ClaimCursors()

  constructor(executor: Executor, schema: string) {
    this.#executor = executor
    this.#claim = claimText(schema)
    this.#due = dueText(schema)
  }

  async look(want: Want): Promise<Look> {
    const [{ leased, next }, due] = await Promise.all([this.#lease(want), this.#findDue(want)])
    return { leased, due, next }
  }

  /** This process made tasks ready: the next claim looks from the front. */
  startOver(): void {
    this.#cursors.forget()
  }

  async #lease(want: Want): Promise<Pick<Look, 'leased' | 'next'>> {
    const { queue, workerId, op, leaseTtl } = want
    const progress = this.#cursors.begin(want)
    const rows = await this.#executor.query(this.#claim, claimValues(want, progress.levels))
    // The last column is the clock, the same in all rows.
    const now = rows[0]!.at(-1) as Instant
    // A last row without a token is no task: it says when to look again, or which levels there are.
    const about = rows.at(-1)![0] === null ? rows.pop()! : null
    const leased: TaskRecord[] = []
    for (const row of rows) leased.push(decodeClaimed(row as Row, { queue, workerId, op, leaseTtl, now }))
    const found = (about?.[LEVELS_AT] ?? null) as string | null
    progress.end(leased, progress.levels ?? (found === null ? null : (JSON.parse(found) as Levels)))
    // After a lease there may be more to lease, and a claim that resumed has not looked everywhere: look again at once.
    const isDone = leased.length === 0 && progress.levels === null
    return { leased: leased.sort(byTurn), next: isDone ? ((about?.[NEXT_AT] ?? null) as Instant | null) : now }
  }

  async #findDue({ dueLimit, now }: Want): Promise<TaskRecord[]> {
    if (dueLimit === 0) return []
    const rows = await this.#executor.query(this.#due, [now, dueLimit])
    return rows.map((row) => decodeWhole(row as Row))
  }
}
