/** Moves that people ask for, one task at a time, each safe to repeat; and claiming by hand. */
import { HoldfastError, isContactLost } from '../core/errors.ts'
import * as machine from '../core/machine.ts'
import { Task } from '../core/snapshot.ts'
import { checkId } from '../core/submission.ts'
import type { Change, TaskRecord } from '../core/task.ts'
import { TaskLease } from './lease.ts'
import { look } from './look.ts'
import type { Queues } from './queues.ts'
import { actorOf, newOp, newSecretOp, notFound, type Session } from './session.ts'
import { read, settle, settleById, withPatience } from './settle.ts'

type DecideAs = (task: TaskRecord, actor: machine.Actor) => Change | null

/** The task after the move `name`, under one operation id however often it must be tried. */
export const moveById = async (
  session: Session,
  id: string,
  moves: readonly machine.MoveName[],
  decide: DecideAs,
): Promise<Task> => {
  const op = newOp()
  return new Task(
    await settleById(session, checkId(id), { op, moves, decide: (task) => decide(task, actorOf(session, op)) }),
  )
}

/** A pending task is cancelled, a running one asked to stop; what is so already is a success. */
export const cancelById = (session: Session, id: string, reason?: string): Promise<Task> =>
  moveById(session, id, ['cancel', 'request-cancel'], (task, actor) => machine.cancel(task, actor, reason))

/** Only what has ended can go. Its idempotency key goes with it. */
export const deleteById = async (session: Session, id: string): Promise<void> => {
  const key = checkId(id)
  let mayBeOurs = false
  for (;;) {
    const [task] = await withPatience(session, () => session.store.get([key]))
    if (!task) {
      if (mayBeOurs) return
      throw notFound(key)
    }
    machine.mustBeTerminal(task)
    try {
      const [removed] = await session.store.remove([{ id: key, revision: task.revision, endKey: true }])
      if (removed === 'removed') return
    } catch (error) {
      if (!isContactLost(error)) throw error
      mayBeOurs = true
    }
  }
}

/** A pause is seen by everybody within 5 s. */
const PAUSES_SEEN_WITHIN = 1_000

export interface ClaimFacts {
  readonly workerId: string
  readonly leaseTtl: number
}

/** The same worker again: the same lease. A lapsed lease of another is taken first, as any look would. */
export const claimById = async (
  session: Session,
  queues: Queues,
  id: string,
  { workerId, leaseTtl }: ClaimFacts,
): Promise<TaskLease> => {
  const token = `${newSecretOp()}.0`
  const { time, random, store } = session
  let task = await read(session, checkId(id))
  if (task.status === 'running' && task.lease?.workerId === workerId) {
    const held = { token: task.lease.token }
    const renewal = { id: task.id, token: held.token, leaseTtl }
    const [renewed] = await withPatience(session, () => store.renew([renewal], null))
    if (renewed !== 'lost') return new TaskLease(session, task, held, leaseTtl)
    task = await read(session, task.id)
  }
  if (task.status === 'pending' && (await queues.refresh()).has(task.queue)) {
    throw new HoldfastError('QUEUE_PAUSED', `queue '${task.queue}' is paused`, { id: task.id, queue: task.queue })
  }
  const roll = random()
  if (machine.overdue(task, actorOf(session), roll) !== null) {
    const overdueOp = newOp()
    const moves = ['expire', 'lose-lease'] as const
    task = await settle(session, task, {
      op: overdueOp,
      moves,
      decide: (fresh) => machine.overdue(fresh, actorOf(session, overdueOp), roll),
    })
  }
  const claimed = await settle(session, task, {
    op: token,
    moves: ['claim'],
    decide: (fresh) => machine.claim(fresh, { token, workerId, leaseTtl, now: time.now() }),
  })
  // A repeat may find that the claim was written and its lease lost again since.
  machine.holding(claimed, { token })
  return new TaskLease(session, claimed, { token }, leaseTtl)
}

export interface ClaimDueFacts extends ClaimFacts {
  readonly limit: number
  readonly queue: string
  readonly types: readonly string[] | null
}

/** The first tasks that are due, in one look: as many as there are, up to `limit`. */
export const claimDue = async (
  session: Session,
  queues: Queues,
  { queue, types, limit, workerId, leaseTtl }: ClaimDueFacts,
): Promise<TaskLease[]> => {
  if ((await queues.recent(PAUSES_SEEN_WITHIN)).has(queue)) return []
  const op = newSecretOp()
  let isRepeat = false
  return withPatience(session, async () => {
    // The reply to the first try may have been lost: then they are held already, under tokens that begin with our op.
    const held = isRepeat ? await heldUnder(session, workerId, op) : []
    isRepeat = true
    const tasks =
      held.length > 0
        ? held
        : (await look(session, { queue, types, limit, workerId, leaseTtl, op, takeLeases: true })).leased
    return tasks.map((task) => new TaskLease(session, task, { token: task.lease!.token }, leaseTtl))
  })
}

const heldUnder = async ({ store }: Session, workerId: string, op: string): Promise<TaskRecord[]> => {
  const held = await store.list({ workerId }, { order: 'newest', limit: 1_000, now: null })
  return held.filter(({ lease }) => lease?.token.startsWith(`${op}.`))
}

/** The lease that somebody else's words describe: a token kept elsewhere, or only a worker id. */
export const leaseOf = async (
  session: Session,
  id: string,
  holder: { readonly token: string } | { readonly workerId: string },
  leaseTtl: number,
): Promise<TaskLease> => new TaskLease(session, await read(session, checkId(id)), holder, leaseTtl)
