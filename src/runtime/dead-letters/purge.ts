/** Removes dead letters permanently, a batch at a time. */
import { HoldfastError } from '../../core/errors.ts'
import { ended, mustBeTerminal } from '../../core/machine.ts'
import type { TaskRecord } from '../../core/task.ts'
import type { Session } from '../session.ts'
import { read } from '../tasks/settle.ts'

/** The result for one task. */
export type Purged = { readonly id: string } | { readonly id: string; readonly error: HoldfastError }

/** Removes only tasks that are still dead and have not changed since they were selected. */
export const purgeBatch = async (session: Session, dead: readonly TaskRecord[]): Promise<Purged[]> => {
  const results: Purged[] = []
  const removed = await removeTogether(session, dead)
  for (const [i, task] of dead.entries()) {
    if (removed[i] === 'removed') results.push({ id: task.id })
    else results.push(await purgeOne(session, task, removed[i] === 'unclear'))
  }
  return results
}

const removeTogether = async (
  { store }: Session,
  dead: readonly TaskRecord[],
): Promise<readonly ('removed' | 'conflict' | 'gone' | 'unclear')[]> => {
  try {
    const failed = dead.filter(({ status }) => status === 'failed')
    const removed = await store.remove(failed.map(({ id, revision }) => ({ id, revision, endKey: true })))
    return dead.map((task) => (failed.includes(task) ? removed[failed.indexOf(task)]! : 'conflict'))
  } catch {
    return dead.map(() => 'unclear')
  }
}

const purgeOne = async (session: Session, { id }: TaskRecord, mayBeOurs: boolean): Promise<Purged> => {
  try {
    const fresh = await read(session, id)
    mustBeTerminal(fresh)
    if (fresh.status !== 'failed') throw ended(fresh)
    const [removed] = await session.store.remove([{ id, revision: fresh.revision, endKey: true }])
    if (removed !== 'conflict') return { id }
    throw new HoldfastError('STORE_CONFLICT', `task ${id} changed while it was being removed`, { id })
  } catch (error) {
    if (!(error instanceof HoldfastError)) throw error
    return error.code === 'TASK_NOT_FOUND' && mayBeOurs ? { id } : { id, error }
  }
}
