/** Walks over all tasks of a store, oldest first, in pages of bounded size in memory. */
import type { TaskRecord } from '../../core/task.ts'
import type { Query } from '../../store/store.ts'
import { withPatience } from '../patience.ts'
import type { Session } from '../session.ts'

const FIRST = 50
const MOST = 1_000
/** The approximate number of payload characters in one page. */
const WEIGHT = 4_000_000

/** Records have no history. One page is read ahead. A task inserted behind the current position is not returned. */
export async function* pagesOf(session: Session, query: Query): AsyncGenerator<readonly TaskRecord[], void, undefined> {
  const read = (limit: number, after?: string): Promise<readonly TaskRecord[]> => {
    const page = { order: 'oldest' as const, limit, now: null, ...(after === undefined ? null : { after }) }
    const reading = withPatience(session, () => session.store.list(query, page)).then(({ tasks }) => tasks)
    // A caller that stops early never awaits the next page.
    reading.catch(() => {})
    return reading
  }
  let tasks = await read(FIRST)
  while (tasks.length > 0) {
    const next = read(nextLimit(tasks), tasks.at(-1)!.id)
    yield tasks
    tasks = await next
  }
}

/** At most twice the previous limit, so that each page predicts the size of the next. */
const nextLimit = (tasks: readonly TaskRecord[]): number => {
  let weight = 0
  for (const { input, output } of tasks) weight += 1_000 + input.length + (output?.length ?? 0)
  return Math.max(1, Math.min(MOST, tasks.length * 2, Math.floor((WEIGHT * tasks.length) / weight)))
}
