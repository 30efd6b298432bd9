/** Cancels many tasks, by id or by query, batch by batch. */

import { type HoldfastError, isContactLost } from '../../core/errors.ts'
import * as machine from '../../core/machine.ts'
import { isLastPage } from '../../core/storage/page-weight.ts'
import { checkedId } from '../../core/submission.ts'
import type { TaskRecord } from '../../core/task.ts'
import { withPatience } from '../patience.ts'
import { actorOf, newOp, notFound, type Session } from '../session.ts'
import { mustSayWhich, type TaskQuery, toQuery } from './inspect.ts'
import { type EachResult, moveEach } from './move-each.ts'

/** Limits of `cancelMany`. */
export interface CancelManyOptions {
  /** Recorded in each history. */
  readonly reason?: string
  /** Stops between two batches; what is done stays done. */
  readonly signal?: AbortSignal
  /** Called after each batch. */
  readonly onProgress?: (done: number) => void
}

const BATCH = 500

type Chosen = TaskRecord | { readonly id: string; readonly error: HoldfastError }

/** Results in the order of the ids or, for a query, newest first. Ends early if contact is lost; the same call continues. */
export const cancelMany = async (
  session: Session,
  which: readonly string[] | TaskQuery,
  { reason, signal, onProgress }: CancelManyOptions = {},
): Promise<EachResult[]> => {
  const op = newOp()
  const results: EachResult[] = []
  for await (const batch of isIds(which) ? byIds(session, which) : byQuery(session, which)) {
    if (signal?.aborted) break
    const tasks = batch.filter((one): one is TaskRecord => 'revision' in one)
    const moved = await moveEach(session, tasks, {
      op,
      moves: ['cancel', 'request-cancel'],
      decide: (task) => machine.cancel(task, actorOf(session, op), reason),
    })
    const byTask = new Map(moved.map((result) => [result.id, result]))
    results.push(...batch.map((one) => ('revision' in one ? byTask.get(one.id)! : one)))
    onProgress?.(results.length)
    if (moved.some((result) => 'error' in result && isContactLost(result.error))) break
  }
  return results
}

const isIds = (which: readonly string[] | TaskQuery): which is readonly string[] => Array.isArray(which)

/** An invalid or unknown id gets its own error result. */
async function* byIds(session: Session, ids: readonly string[]): AsyncGenerator<readonly Chosen[], void, undefined> {
  const distinct = [...new Set(ids)]
  for (let i = 0; i < distinct.length; i += BATCH) {
    const some = distinct.slice(i, i + BATCH).map(checkedId)
    const good = some.flatMap((one) => (typeof one === 'string' ? [one] : []))
    const found = await withPatience(session, () => session.store.get(good))
    const records = new Map(good.map((id, n) => [id, found[n]]))
    yield some.map((one) => (typeof one === 'string' ? (records.get(one) ?? { id: one, error: notFound(one) }) : one))
  }
}

/** Newest first, so that tasks submitted meanwhile are not included. Records have no history. */
async function* byQuery(session: Session, query: TaskQuery): AsyncGenerator<readonly Chosen[], void, undefined> {
  mustSayWhich(query)
  const wanted = toQuery({ status: ['pending', 'running'], ...query })
  let after: string | undefined
  for (;;) {
    const page = { order: 'newest' as const, limit: BATCH, now: null, ...(after === undefined ? null : { after }) }
    const { tasks } = await withPatience(session, () => session.store.list(wanted, page))
    if (tasks.length > 0) yield tasks
    if (isLastPage(tasks, BATCH)) return
    after = tasks.at(-1)!.id
  }
}
