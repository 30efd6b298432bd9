/** Replays dead letters a batch at a time, in place or as new tasks. Every step is idempotent. */
import { HoldfastError, isContactLost } from '../../core/errors.ts'
import * as machine from '../../core/machine.ts'
import { Task } from '../../core/observe/task-view.ts'
import type { Change, Instant, TaskRecord } from '../../core/task.ts'
import { replacementOf } from '../../core/transfer/replacement.ts'
import type { Inserted, Insertion } from '../../store/store.ts'
import { newId } from '../ids.ts'
import { withPatience } from '../patience.ts'
import { actorOf, type Session } from '../session.ts'
import { hashOf } from '../submit/submitter.ts'
import { type EachResult, each, moveEach } from '../tasks/move-each.ts'
import { cancelById, deleteById } from '../tasks/operations.ts'

export interface Replay {
  /** One id for the whole call. In the history it distinguishes a retry from a second replay. */
  readonly op: string
  readonly asNew: boolean
  /** Forgets the recorded steps and signals. */
  readonly fresh: boolean
  /** The expiry of the replayed task. */
  expiresAt(now: Instant): Instant | null
}

/** One result per task, in order: the task that will run. */
export const replayBatch = (session: Session, dead: readonly TaskRecord[], replay: Replay): Promise<EachResult[]> =>
  replay.asNew ? replayAsNew(session, dead, replay) : replayInPlace(session, dead, replay)

// ── in place ─────────────────────────────────────────────────────────────────────────────────────────────────────

const replayInPlace = (session: Session, dead: readonly TaskRecord[], replay: Replay): Promise<EachResult[]> =>
  moveEach(session, dead, {
    op: replay.op,
    moves: ['replay'],
    decide: (task, seen) => {
      const actor = actorOf(session, replay.op)
      return machine.replay(sameDeath(seen, task), actor, {
        expiresAt: replay.expiresAt(actor.now),
        fresh: replay.fresh,
      })
    },
  })

/** Refuses a task that ran again since it was selected: it may have failed for a reason that the operator has not seen. */
const sameDeath = (seen: TaskRecord, fresh: TaskRecord): TaskRecord => {
  if (fresh.attempts === seen.attempts) return fresh
  throw new HoldfastError(
    'CANNOT_REPLAY',
    `task ${fresh.id} has run again since it was chosen and is ${fresh.status}`,
    {
      id: fresh.id,
      status: fresh.status,
    },
  )
}

// ── as new ───────────────────────────────────────────────────────────────────────────────────────────────────────

interface Replaced {
  readonly dead: TaskRecord
  readonly newId: string
  /** null if it has run and been removed since; only its key is left. */
  readonly replacement: TaskRecord | null
  readonly isOurs: boolean
}

/**
 * First inserts the new task, under a key that every retry finds again; then archives the old one with the link. If the process
 * dies in between, a second replay of the dead letter finds the new task and only archives the old one.
 */
const replayAsNew = async (session: Session, tasks: readonly TaskRecord[], replay: Replay): Promise<EachResult[]> => {
  const results = new Map<string, EachResult>()
  const dead = tasks.filter((task) => task.status === 'failed')
  for (const task of tasks)
    if (task.status !== 'failed') results.set(task.id, await each(task.id, () => replayedBefore(session, task)))
  const replaced: Replaced[] = []
  for (const one of await insertTogether(session, dead, replay)) {
    if ('error' in one) results.set(one.id, one)
    else replaced.push(one)
  }
  const newIds = new Map(replaced.map(({ dead: { id }, newId: of }) => [id, of]))
  const archived = await moveEach(
    session,
    replaced.map((one) => one.dead),
    {
      op: replay.op,
      moves: ['archive'],
      decide: (task, seen) => archiveAs(session, sameDeath(seen, task), newIds.get(task.id)!, replay.op),
    },
  )
  for (const [i, result] of archived.entries()) {
    const { replacement, isOurs } = replaced[i]!
    // Only after a definite refusal: if the reply was lost, the archive may have been written, and its link must stay valid.
    if ('error' in result && result.error.code === 'CANNOT_REPLAY' && isOurs) await takeBack(session, replacement!.id)
    results.set(
      result.id,
      'error' in result || replacement === null ? result : { id: result.id, task: new Task(replacement) },
    )
  }
  return tasks.map(({ id }) => results.get(id)!)
}

const archiveAs = (session: Session, task: TaskRecord, newId: string, op: string): Change | null => {
  if (task.status === 'archived' && task.replayedAs === newId) return null
  if (task.status !== 'failed') throw cannotReplay(task)
  return machine.archive(task, actorOf(session, op), newId)
}

/** The replay was already finished by an earlier call: returns the task that it was replayed as. */
const replayedBefore = async ({ store }: Session, task: TaskRecord): Promise<Task> => {
  if (task.status === 'archived' && task.replayedAs !== null) {
    const [replacement] = await store.get([task.replayedAs])
    if (replacement) return new Task(replacement)
  }
  throw cannotReplay(task)
}

const insertTogether = async (
  session: Session,
  dead: readonly TaskRecord[],
  replay: Replay,
): Promise<(Replaced | { readonly id: string; readonly error: HoldfastError })[]> => {
  if (dead.length === 0) return []
  const insertions = dead.map((task) => insertionOf(session, task, replay))
  try {
    const inserted = await withPatience(session, () => session.store.insert(insertions, { now: null }))
    return inserted.map((one, i) => replacedBy(session, dead[i]!, insertions[i]!, one))
  } catch (error) {
    if (!(error instanceof HoldfastError)) throw error
    if (dead.length === 1 || isContactLost(error)) return dead.map(({ id }) => ({ id, error }))
    // Nothing was written: perhaps because of a single task.
    const one: Awaited<ReturnType<typeof insertTogether>> = []
    for (const task of dead) one.push(...(await insertTogether(session, [task], replay)))
    return one
  }
}

const insertionOf = (session: Session, dead: TaskRecord, { op, expiresAt }: Replay): Insertion => {
  const { now, by } = actorOf(session, op)
  const { task, key } = replacementOf(dead, { now, by, op, id: newId() }, expiresAt(now))
  const hash = hashOf(task.type, { text: task.input, encoding: task.encoding })
  return { task, key: { key: task.idempotencyKey!, taskId: task.id, hash, ...key! } }
}

const replacedBy = (
  session: Session,
  dead: TaskRecord,
  { task }: Insertion,
  inserted: Inserted,
): Replaced | { readonly id: string; readonly error: HoldfastError } => {
  if (inserted.outcome === 'created' || inserted.task?.id === task.id) {
    session.events.submitted(task)
    return { dead, newId: task.id, replacement: task, isOurs: true }
  }
  const { task: replacement } = inserted
  if (replacement?.status === 'cancelled') {
    const told = `task ${dead.id} was replayed as ${replacement.id}, which was cancelled: retry that one, or delete it first`
    return { id: dead.id, error: new HoldfastError('CANNOT_REPLAY', told, { id: dead.id, replayedAs: replacement.id }) }
  }
  const id = inserted.outcome === 'existing' ? inserted.key.taskId : inserted.task.id
  return { dead, newId: id, replacement, isOurs: false }
}

/** Cancels the new task, because another process has replayed the old one meanwhile. */
const takeBack = async (session: Session, id: string): Promise<void> => {
  try {
    const { status } = await cancelById(session, id, 'the task that it replays is not dead any more')
    if (status === 'cancelled') await deleteById(session, id)
  } catch (error) {
    session.logger.warn(`task ${id} could not be taken back: ${error instanceof Error ? error.message : String(error)}`)
  }
}

// ── errors ───────────────────────────────────────────────────────────────────────────────────────────────────────

const cannotReplay = ({ id, status }: TaskRecord): HoldfastError =>
  new HoldfastError('CANNOT_REPLAY', `task ${id} is ${status}; only a failed task can be replayed`, { id, status })
