/** A claim by id in a queue with limits: the store's claim performs it, because only there a place is taken exactly. */
import { HoldfastError, isContactLost } from '../../core/errors.ts'
import * as machine from '../../core/machine.ts'
import type { TaskRecord } from '../../core/task.ts'
import { formatInstant } from '../../core/values/instants.ts'
import { heldBack } from '../queues/held-back.ts'
import type { Queues } from '../queues/queues.ts'
import type { Session } from '../session.ts'
import { read } from './settle.ts'

export interface ClaimWithin {
  readonly workerId: string
  readonly leaseTtl: number
  /** The token of the lease begins with it. */
  readonly op: string
}

/** LIMIT_REACHED with the reason when a limit leaves no room; else the error that names what prevents the claim. */
export const claimWithin = async (
  session: Session,
  queues: Queues,
  { id, queue, group }: TaskRecord,
  { workerId, leaseTtl, op }: ClaimWithin,
): Promise<TaskRecord> => {
  const want = { queue, types: null, limit: 1, workerId, leaseTtl, op, withDue: false, isAhead: false, unstarted: [] }
  try {
    const { leased } = await queues.looks.look({ ...want, one: { id, group } }, session)
    if (leased[0] !== undefined) return leased[0]
  } catch (error) {
    if (!isContactLost(error)) throw error
    const found = await read(session, id)
    if (found.lease?.token.startsWith(`${op}.`)) return found
    throw error
  }
  const fresh = await read(session, id)
  machine.claim(fresh, { token: op, workerId, leaseTtl, now: session.time.now() })
  const why = (await heldBack(session, queues, fresh, formatInstant)) ?? `queue '${queue}' had no room a moment ago`
  throw new HoldfastError('LIMIT_REACHED', `task ${id} cannot be claimed: ${why}`, { id, queue, group, reason: why })
}
