/** Decides a move and writes it. If another process wrote first or the reply was lost, it reads the task, looks for its own op, and decides again. */
import { HoldfastError, isContactLost } from '../../core/errors.ts'
import { hasOp, type MoveName } from '../../core/machine.ts'
import { applyChange, type Change, type TaskRecord } from '../../core/task.ts'
import type { Committed } from '../../store/store.ts'
import { pause } from '../clock.ts'
import { waitBefore, withPatience } from '../patience.ts'
import { notFound, type Session } from '../session.ts'

export interface Decision {
  /** The operation id of the move in the history; together with `moves` it identifies the move. */
  readonly op: string
  readonly moves: readonly MoveName[]
  /** Returns null if nothing is left to do. */
  decide(task: TaskRecord): Change | null
  /** How long to go on while others write first. Default: a number of tries. */
  readonly patience?: number
}

const TRIES = 20
/** Where many processes write to one task, all of them wait for a while, so that one gets through. */
const FEW_CONFLICTS = 3

/** Returns the task after the move. Safe to repeat: a move that was written is found by its op. */
export const settle = async (
  session: Session,
  start: TaskRecord,
  { op, moves, decide, patience = 0 }: Decision,
): Promise<TaskRecord> => {
  await session.time.freshen()
  const { clock } = session
  const end = clock.mono() + patience
  let task = start
  let tried: (() => void) | null = null
  for (let tries = 0; tries < TRIES || clock.mono() < end; tries++) {
    if (hasOp(task, op, moves)) {
      // An earlier try was written and its reply lost: report the move now.
      tried?.()
      return task
    }
    const change = decide(task)
    if (change === null) return task
    const committed = await tryCommit(session, change)
    if (committed === 'written') {
      session.events.moved(task, change)
      return applyChange(task, change)
    }
    const before = task
    tried = () => session.events.moved(before, change)
    if (committed === 'unclear' || tries > FEW_CONFLICTS) await pause(clock, waitBefore(Math.min(tries, 5), session))
    task = await read(session, task.id)
  }
  throw new HoldfastError('STORE_CONFLICT', `task ${start.id} changed during each of ${TRIES} tries`, {
    id: start.id,
  })
}

export const settleById = async (session: Session, id: string, decision: Decision): Promise<TaskRecord> =>
  settle(session, await read(session, id), decision)

const tryCommit = async (session: Session, change: Change): Promise<Committed | 'unclear'> => {
  try {
    return (await session.store.commit([change]))[0]!
  } catch (error) {
    if (isContactLost(error)) return 'unclear'
    throw error
  }
}

export const read = async (session: Session, id: string): Promise<TaskRecord> => {
  const [task] = await withPatience(session, () => session.store.get([id]))
  if (task) return task
  throw notFound(id)
}
