/** Moves of single tasks by request, each safe to repeat, and claims by hand. */

import { HoldfastError, isContactLost } from '../../core/errors.ts'
import { deadlineOf } from '../../core/guards.ts'
import { keyIsLive } from '../../core/idempotency.ts'
import * as machine from '../../core/machine.ts'
import { Task } from '../../core/observe/task-view.ts'
import { isLastPage } from '../../core/storage/page-weight.ts'
import { checkId, checkInteger, checkName, checkWorkerId } from '../../core/submission.ts'
import type { Change, TaskRecord } from '../../core/task.ts'
import type { Duration } from '../../core/values/durations.ts'
import { checkOptionNames } from '../../core/values/option-names.ts'
import { pause } from '../clock.ts'
import { withPatience } from '../patience.ts'
import { mayTake } from '../queues/look.ts'
import type { Queues } from '../queues/queues.ts'
import { actorOf, newOp, newSecretOp, notFound, type Session } from '../session.ts'
import { claimWithin } from './claim-within.ts'
import { TaskLease } from './lease.ts'
import { leaseTtlOf } from './lease-ttl.ts'
import { read, settle, settleById } from './settle.ts'

type DecideAs = (task: TaskRecord, actor: machine.Actor) => Change | null

/** Makes the move `name` and returns the task after it. All tries share one operation id. */
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

/** Cancels a pending task and asks a running one to stop. Succeeds if that has happened already. */
export const cancelById = (session: Session, id: string, reason?: string): Promise<Task> =>
  moveById(session, id, ['cancel', 'request-cancel'], (task, actor) => machine.cancel(task, actor, reason))

/** Deletes a task that has ended, with its idempotency key. */
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

/** Claims by hand use pauses that are at most about this old. The promise is 5 s. */
const PAUSES_SEEN_WITHIN = 1_000

/** TASK_NOT_FOUND if the key was never used or has expired. */
export const findByKey = async (session: Session, key: string): Promise<Task> => {
  const found = await session.store.find(key)
  if (found?.task && keyIsLive(found.key, true, session.time.now())) return new Task(found.task)
  throw new HoldfastError('TASK_NOT_FOUND', `no task has the idempotency key '${key}'`, { key })
}

/** Who claims, and for how long. */
export interface ClaimOptions {
  /** Who claims, as histories show it. The same worker gets the same lease again. */
  readonly workerId: string
  /** How long the lease lasts without a renewal. Default: that of the store, 5 s on SQLite and PostgreSQL. */
  readonly leaseTtl?: Duration
}

/** Which tasks `claimNext` may claim, and for how long. */
export interface ClaimNextOptions extends ClaimOptions {
  /** Default 'default'. */
  readonly queue?: string
  /** Default: any. */
  readonly types?: readonly string[]
}

/** The same worker gets the same lease again. A lapsed lease of another worker is first taken back, as any look would do. */
export const claimById = async (
  session: Session,
  queues: Queues,
  id: string,
  options: ClaimOptions,
): Promise<TaskLease> => {
  checkOptionNames(options, ['workerId', 'leaseTtl'], 'a claim')
  const workerId = checkWorkerId(options.workerId)
  const leaseTtl = options.leaseTtl === undefined ? null : leaseTtlOf(session, options.leaseTtl)
  const op = newSecretOp()
  const token = `${op}.0`
  const { time, random, store } = session
  let task = await read(session, checkId(id))
  session.contact.noticeSuspension()
  if (task.status === 'running' && task.lease?.workerId === workerId) {
    const held = { token: task.lease.token }
    const deadline = deadlineOf(task)
    const renewal = {
      id: task.id,
      token: held.token,
      leaseTtl: leaseTtl ?? task.lease.ttl,
      ...(deadline === null ? null : { notAfter: deadline }),
    }
    const [renewed] = await withPatience(session, () => store.renew([renewal], null))
    // Read again, so that the caller sees the new end of the lease.
    task = await read(session, task.id)
    if (renewed !== 'lost' && task.lease?.token === held.token) return new TaskLease(session, task, held)
  }
  if (task.status === 'pending') await mustNotBePaused(queues, task)
  const roll = random()
  if (mayTake(session, task) && machine.overdue(task, actorOf(session), roll) !== null) {
    const overdueOp = newOp()
    const moves = ['expire', 'lose-lease', 'time-out'] as const
    task = await settle(session, task, {
      op: overdueOp,
      moves,
      decide: (fresh) => machine.overdue(fresh, actorOf(session, overdueOp), roll),
    })
  }
  await untilCertain(session, task)
  const ttl = leaseTtl ?? leaseTtlOf(session, undefined)
  if (queues.limits.isBound(task.queue)) {
    const limited = await claimWithin(session, queues, task, { workerId, leaseTtl: ttl, op })
    return new TaskLease(session, limited, { token: limited.lease!.token })
  }
  const claimed = await settle(session, task, {
    op: token,
    moves: ['claim'],
    decide: (fresh) => machine.claim(fresh, { token, workerId, leaseTtl: ttl, now: time.now() }),
  })
  // A retry may find that the claim was written and its lease has been lost since.
  machine.holding(claimed, { token })
  return new TaskLease(session, claimed, { token })
}

const mustNotBePaused = async (queues: Queues, { id, queue, group }: TaskRecord): Promise<void> => {
  const isWhole = (await queues.refresh()).has(queue)
  if (!isWhole && !queues.isPaused(queue, group)) return
  const what = isWhole ? `queue '${queue}'` : `group '${group}' of queue '${queue}'`
  throw new HoldfastError('QUEUE_PAUSED', `${what} is paused`, { id, queue, ...(isWhole ? null : { group }) })
}

/**
 * A task that another process has just submitted may appear to be in the future, because this process knows the store's time
 * less exactly, as a new connection does. The difference is within that uncertainty, so this waits instead of refusing.
 */
const untilCertain = async ({ time, clock }: Session, { status, availableAt }: TaskRecord): Promise<void> => {
  const early = availableAt - time.now()
  if (status === 'pending' && early > 0 && early <= 2 * time.uncertainty) await pause(clock, early)
}

/** Claims the first due tasks in one look, up to `limit`. */
export const claimDue = async (
  session: Session,
  queues: Queues,
  options: ClaimNextOptions & { readonly limit: number },
): Promise<TaskLease[]> => {
  checkOptionNames(options, ['workerId', 'leaseTtl', 'queue', 'types', 'limit'], 'a claim')
  const workerId = checkWorkerId(options.workerId)
  const leaseTtl = leaseTtlOf(session, options.leaseTtl)
  const queue = checkName(options.queue ?? 'default', 'queue')
  const types = options.types?.map((type) => checkName(type, 'types')) ?? null
  const limit = checkInteger(options.limit, 'limit', 1, 1_000)
  if ((await queues.recent(PAUSES_SEEN_WITHIN)).has(queue)) return []
  const op = newSecretOp()
  let isRepeat = false
  return withPatience(session, async () => {
    // If the reply to the first try was lost, the tasks are already held under tokens that begin with our op.
    const held = isRepeat ? await heldUnder(session, workerId, op) : []
    isRepeat = true
    const want = { queue, types, limit, workerId, leaseTtl, op, isAhead: false, unstarted: [] }
    const tasks = held.length > 0 ? held : (await queues.looks.look(want, session)).leased
    session.contact.noticeSuspension()
    return tasks.map((task) => new TaskLease(session, task, { token: task.lease!.token }))
  })
}

const HELD_PAGE = 1_000

const heldUnder = async ({ store }: Session, workerId: string, op: string): Promise<TaskRecord[]> => {
  const held: TaskRecord[] = []
  for (let after: string | undefined; ; after = held.at(-1)!.id) {
    const page = { order: 'newest', limit: HELD_PAGE, now: null, ...(after === undefined ? null : { after }) } as const
    const { tasks: found } = await store.list({ workerId }, page)
    held.push(...found)
    if (isLastPage(found, HELD_PAGE)) return held.filter(({ lease }) => lease?.token.startsWith(`${op}.`))
  }
}

/** The lease for a token that the caller has kept, or for a worker id alone. */
export const leaseOf = async (
  session: Session,
  id: string,
  holder: { readonly token: string } | { readonly workerId: string },
): Promise<TaskLease> => new TaskLease(session, await read(session, checkId(id)), holder)
