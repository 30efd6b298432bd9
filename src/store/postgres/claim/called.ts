/** The rows that a claim function returns: tasks, and a last one without a token that says what else it found. */
import { PAGE_WEIGHT, weightOf } from '../../../core/storage/page-weight.ts'
import type { Instant, TaskRecord } from '../../../core/task.ts'
import { decodeClaimed } from '../../sql/claimed.ts'
import { type Row, readJson } from '../../sql/rows.ts'
import type { ClaimRequest } from '../../store.ts'
import type { PgRow } from '../connection.ts'
import type { Levels } from './cursors.ts'

/** Where they stand in a row without a token. */
const NEXT_AT = 2
const FOUND_AT = 14
const LEVELS_AT = 15
/** The server's clock when the claim began, and when it had ended. The same in all rows. */
const NOW_AT = 18
const ENDED_AT = 19

/** Asked for beside what the function returns. */
export const ENDED = 'floor(extract(epoch from clock_timestamp()) * 1000)::bigint'

/** Where a claim ended that had too many hops from group to group before it. */
export interface Cut {
  readonly priority: number
  readonly group: string
}

/** What a claim under limits says beside its tasks. */
interface Found {
  readonly isIsolated?: boolean
  readonly isHeldBack?: boolean
  readonly isContested?: boolean
  readonly full?: readonly string[]
  readonly cut?: Cut | null
}

export interface Called extends Found {
  readonly leased: TaskRecord[]
  readonly now: Instant
  /** Milliseconds, on the server. */
  readonly took: number
  readonly next: Instant | null
  readonly levels: Levels | null
}

export const decodeCall = (rows: PgRow[], { queue, workerId, op, leaseTtl }: ClaimRequest): Called => {
  const now = rows[0]![NOW_AT] as Instant
  const took = (rows[0]![ENDED_AT] as Instant) - now
  const about = rows.at(-1)![0] === null ? rows.pop()! : null
  const leased: TaskRecord[] = []
  for (const row of rows) leased.push(decodeClaimed(row as Row, { queue, workerId, op, leaseTtl, now }))
  if (about === null) return { leased, now, took, next: null, levels: null }
  return {
    ...readJson<Found>((about as Row)[FOUND_AT]!, {}),
    leased,
    now,
    took,
    next: about[NEXT_AT] as Instant | null,
    levels: readJson<Levels | null>((about as Row)[LEVELS_AT]!, null),
  }
}

/** How many of such tasks one claim may take, by their payloads. */
export const mostAtOnce = (leased: readonly TaskRecord[]): number => {
  const weight = leased.reduce((sum, task) => sum + weightOf(task), 0)
  return Math.max(1, Math.floor((PAGE_WEIGHT * leased.length) / Math.max(1, weight)))
}
