/** One wish about many tasks: which ones, and a result for each. */
import { HoldfastError } from '../core/errors.ts'
import type { Task } from '../core/snapshot.ts'
import { listTasks, type TaskPage, type TaskQuery } from './inspect.ts'
import { cancelById } from './operations.ts'
import type { Session } from './session.ts'

/** How one of many went. */
export type EachResult =
  | { readonly id: string; readonly task: Task }
  | { readonly id: string; readonly error: HoldfastError }

export const cancelMany = async (
  session: Session,
  which: readonly string[] | TaskQuery,
  reason?: string,
): Promise<EachResult[]> => {
  const ids = isIds(which) ? which : await idsOf(session, { status: ['pending', 'running'], ...which })
  const results: EachResult[] = []
  for (const id of ids) results.push(await each(id, () => cancelById(session, id, reason)))
  return results
}

const isIds = (which: readonly string[] | TaskQuery): which is readonly string[] => Array.isArray(which)

const idsOf = async (session: Session, query: TaskQuery): Promise<string[]> => {
  const ids: string[] = []
  let cursor: string | null = null
  do {
    const page: TaskPage = await listTasks(session, {
      ...query,
      limit: 1_000,
      ...(cursor === null ? null : { cursor }),
    })
    for (const { id } of page.tasks) ids.push(id)
    cursor = page.cursor
  } while (cursor !== null)
  return ids
}

/** What is refused is that one's own result; a fault is everybody's. */
export const each = async (id: string, move: () => Promise<Task>): Promise<EachResult> => {
  try {
    return { id, task: await move() }
  } catch (error) {
    if (error instanceof HoldfastError) return { id, error }
    throw error
  }
}
