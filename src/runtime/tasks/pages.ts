/** A walk over all tasks of a store, the oldest first, in pages that stay small in memory whatever the tasks hold. */
import type { TaskRecord } from '../../core/task.ts'
import type { Query } from '../../store/store.ts'
import { withPatience } from '../patience.ts'
import type { Session } from '../session.ts'

const FIRST = 50
const MOST = 1_000
/** Characters of payload in one page, about. */
const WEIGHT = 4_000_000

/** Without history, one page read ahead. A task that comes in below where the walk has been is not met. */
export async function* pagesOf(session: Session, query: Query): AsyncGenerator<readonly TaskRecord[], void, undefined> {
  const read = (limit: number, after?: string): Promise<readonly TaskRecord[]> => {
    const page = { order: 'oldest' as const, limit, now: null, ...(after === undefined ? null : { after }) }
    const reading = withPatience(session, () => session.store.list(query, page)).then(({ tasks }) => tasks)
    // A caller that stops in the middle never awaits the next page.
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

/** At the most twice the last, so that one page tells about the next before it is asked for. */
const nextLimit = (tasks: readonly TaskRecord[]): number => {
  let weight = 0
  for (const { input, output } of tasks) weight += 1_000 + input.length + (output?.length ?? 0)
  return Math.max(1, Math.min(MOST, tasks.length * 2, Math.floor((WEIGHT * tasks.length) / weight)))
}
