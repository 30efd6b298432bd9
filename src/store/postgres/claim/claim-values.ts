/** A request as the claim functions take it. */
import type { ClaimRequest } from '../../store.ts'
import type { Value } from '../connection.ts'
import type { Levels } from './cursors.ts'

/** What all of them begin with. */
export const claimValues = ({ queue, types, limit, workerId, op, leaseTtl, now }: ClaimRequest): Value[] => [
  now,
  queue,
  types,
  limit,
  op,
  workerId,
  leaseTtl,
  // The history's entry, but for what differs from task to task.
  `,"move":"claim","to":"running","by":${JSON.stringify(workerId)},"op":${JSON.stringify(op).slice(0, -1)}`,
]

/** Where to resume; null: look from the front. */
export const levelValues = (levels: Levels | null): Value[] =>
  levels === null ? [null, null, null, null] : [levels.types, levels.lines, levels.priorities, levels.begins]
