/** Reads for queries over many tasks. */
import { isContactLost } from '../../../core/errors.ts'
import type { TaskRecord } from '../../../core/task.ts'
import type { Query } from '../../store.ts'
import type { Hints } from '../hints/hints.ts'
import type { Hint } from './hint-names.ts'
import { isLive, type Tasks } from './tasks.ts'

/** Ids in memory at once. */
export const MOST_IDS = 10_000
/** Tasks read at once. */
export const READ_PAGE = 200

/** Hints of the queue and type that a query names. A task may have several. */
export async function* pagesOfHints(
  hints: Hints,
  { queue, type }: Pick<Query, 'queue' | 'type'>,
): AsyncGenerator<readonly Hint[]> {
  for await (const page of hints.pages(queue ?? null))
    yield type === undefined ? page : page.filter((hint) => hint.type === type)
}

/** null: removed. undefined: unreadable, which must not hide the other tasks. Reading it by its id reports the error. */
export const readTasks = (tasks: Tasks, ids: readonly string[]): Promise<(TaskRecord | null | undefined)[]> =>
  Promise.all(
    ids.map(async (id) => {
      try {
        const stored = await tasks.read(id)
        return isLive(stored) ? stored.task : null
      } catch (error) {
        if (isContactLost(error)) throw error
        return undefined
      }
    }),
  )

/** The first ids in order, at most MOST_IDS. */
export const firstInOrder = async (
  pages: AsyncIterable<readonly string[]>,
  forward: boolean,
  isBeyond: (id: string) => boolean,
): Promise<string[]> => {
  const first = new Set<string>()
  let last: string | null = null
  const sorted = (): string[] => {
    const ids = [...first].sort()
    return (forward ? ids : ids.reverse()).slice(0, MOST_IDS)
  }
  for await (const ids of pages) {
    for (const id of ids) if (isBeyond(id) && (last === null || (forward ? id < last : id > last))) first.add(id)
    if (first.size < 2 * MOST_IDS) continue
    const nearest = sorted()
    first.clear()
    for (const id of nearest) first.add(id)
    last = nearest.at(-1)!
  }
  return sorted()
}

/** Whether an id comes after the cursor. Without a cursor every id does. */
export const beyond =
  (cursor: string | undefined, forward: boolean) =>
  (id: string): boolean =>
    cursor === undefined || (forward ? id > cursor : id < cursor)
