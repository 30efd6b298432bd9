/** One look at a queue: leases ready tasks, and moves overdue ones as the machine decides. */
import { deadlineOf } from '../../core/guards.ts'
import { overdue } from '../../core/machine.ts'
import type { Change, TaskRecord } from '../../core/task.ts'
import type { ClaimLimits, ClaimResult } from '../../store/store.ts'
import { newOp, type Session } from '../session.ts'

export interface LookFor {
  readonly queue: string
  readonly types: readonly string[] | null
  readonly limit: number
  readonly workerId: string
  readonly leaseTtl: number
  /** Names this claim, so that its leases can be found if the reply is lost. */
  readonly op: string
  /** Only this task. */
  readonly id?: string
  readonly limits?: ClaimLimits
  /** Also move overdue tasks. Default true; false if that was done a moment ago. */
  readonly withDue?: boolean
  /** Called with the leased tasks as soon as they are known, before overdue tasks are moved. */
  readonly deliver?: (leased: readonly TaskRecord[]) => void
}

const DUE_LIMIT = 200

export interface Looked extends ClaimResult {
  /** A full batch was overdue, so there are probably more. */
  readonly moreDue: boolean
  /** The number of overdue tasks that may not be moved yet: an immediate second look would find the same. */
  readonly leftAlone: number
  /** `next` is when there will be a permit: the store was not asked, so nothing overdue is in it. */
  readonly isOfPermits?: boolean
}

export const look = async (session: Session, { withDue = true, deliver, ...want }: LookFor): Promise<Looked> => {
  const found = await session.store.claim({ ...want, dueLimit: withDue ? DUE_LIMIT : 0, now: null })
  for (const task of found.leased) session.events.claimed(task)
  deliver?.(found.leased)
  const moved = await settleOverdue(session, found.due, want.workerId).catch((error: unknown) => {
    // Leased tasks must not be lost with the error. The next look meets the same overdue tasks again.
    if (found.leased.length === 0) throw error
    return 0
  })
  return { ...found, moreDue: found.due.length === DUE_LIMIT && moved > 0, leftAlone: found.due.length - moved }
}

/** Claims nothing and moves all overdue tasks, of all queues if the store reports all queues. Returns how many may not be moved yet. */
export const sweep = async (
  session: Session,
  { queue, by, isStopped = () => false }: { queue: string; by: string; isStopped?: () => boolean },
): Promise<number> => {
  const { leaseTtl } = session.store
  let found: Looked
  do found = await look(session, { queue, types: null, limit: 0, workerId: by, leaseTtl, op: newOp() })
  while (found.moreDue && !isStopped())
  return found.leftAlone
}

/**
 * A lapsed lease may be taken only after one lease length of unbroken contact: until then its holder may be alive and cut off, as this
 * process was. Checked after the claim, because a slow claim is itself a loss of contact.
 */
export const mayTake = ({ contact, held, time }: Session, task: TaskRecord): boolean => {
  const { status, lease } = task
  if (status !== 'running' || lease === null) return true
  return contact.hasLasted(lease.ttl) && (!held.has(lease.token) || time.now() >= (deadlineOf(task) ?? Infinity))
}

/** Returns how many were moved. A task that another process has moved meanwhile is left alone. */
const settleOverdue = async (session: Session, due: readonly TaskRecord[], by: string): Promise<number> => {
  const now = session.time.now()
  const op = newOp()
  const changes: Change[] = []
  const tasks: TaskRecord[] = []
  for (const task of due) {
    if (!mayTake(session, task)) continue
    const change = overdue(task, { now, by, op }, session.random())
    if (change === null) continue
    changes.push(change)
    tasks.push(task)
  }
  if (changes.length === 0) return 0
  const since = session.clock.mono()
  const committed = await session.store.commit(changes)
  let moved = 0
  for (const [i, result] of committed.entries()) {
    if (result !== 'written') continue
    moved++
    session.events.moved(tasks[i]!, changes[i]!)
  }
  if (moved === 0) session.contact.tookNone(since)
  return moved
}
