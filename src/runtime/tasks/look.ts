/** One look at a queue: what was leased, after the machine has decided about what was overdue. */
import { deadlineOf } from '../../core/guards.ts'
import { overdue } from '../../core/machine.ts'
import type { Change, TaskRecord } from '../../core/task.ts'
import type { ClaimResult } from '../../store/store.ts'
import { newOp, type Session } from '../session.ts'

export interface LookFor {
  readonly queue: string
  readonly types: readonly string[] | null
  readonly limit: number
  readonly workerId: string
  readonly leaseTtl: number
  /** Names this claim, so that what it leased can be found if the reply is lost. */
  readonly op: string
  /** Also report and move what is overdue. Default true; false where that was done a moment ago. */
  readonly withDue?: boolean
  /** Called with what was leased as soon as it is known, before anything overdue is moved. */
  readonly deliver?: (leased: readonly TaskRecord[]) => void
}

const DUE_LIMIT = 200

export interface Looked extends ClaimResult {
  /** A full batch was overdue: there is probably more. */
  readonly moreDue: boolean
  /** Overdue, but not ours to move yet: looking again at once would find the same. */
  readonly leftAlone: number
}

export const look = async (session: Session, { withDue = true, deliver, ...want }: LookFor): Promise<Looked> => {
  const found = await session.store.claim({ ...want, dueLimit: withDue ? DUE_LIMIT : 0, now: null })
  for (const task of found.leased) session.events.claimed(task)
  deliver?.(found.leased)
  const moved = await settleOverdue(session, found.due, want.workerId).catch((error: unknown) => {
    // What was leased must not be lost with the error: the next look meets whatever it was again.
    if (found.leased.length === 0) throw error
    return 0
  })
  return { ...found, moreDue: found.due.length === DUE_LIMIT && moved > 0, leftAlone: found.due.length - moved }
}

/** Takes nothing and moves all that is overdue; where the store reports all queues, in all of them. */
export const sweep = async (
  session: Session,
  { queue, by, isStopped = () => false }: { queue: string; by: string; isStopped?: () => boolean },
): Promise<void> => {
  const { leaseTtl } = session.store
  let found: Looked
  do found = await look(session, { queue, types: null, limit: 0, workerId: by, leaseTtl, op: newOp() })
  while (found.moreDue && !isStopped())
}

/**
 * A lapsed lease may be taken only after one of its lengths of unbroken contact: before, its holder may be alive and cut off as we were. Asked
 * after the claim, because one that took long was a break.
 */
export const mayTake = ({ contact, held, time }: Session, task: TaskRecord): boolean => {
  const { status, lease } = task
  if (status !== 'running' || lease === null) return true
  return contact.hasLasted(lease.ttl) && (!held.has(lease.token) || time.now() >= (deadlineOf(task) ?? Infinity))
}

/** How many were moved. A task that another process moved in the meantime is left alone. */
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
  const committed = await session.store.commit(changes)
  let moved = 0
  for (const [i, result] of committed.entries()) {
    if (result !== 'written') continue
    moved++
    session.events.moved(tasks[i]!, changes[i]!)
  }
  return moved
}
