/** The groups of a queue that have a ready task, in the order of their turns. */
import type { DatabaseSync } from 'node:sqlite'
import type { Instant } from '../../../core/task.ts'
import type { GroupsRequest } from '../../store.ts'
import { firstOf, GroupCursor, Merged } from './group-tasks.ts'
import { dueLevels } from './levels.ts'
import { byBytes } from './lines.ts'

/** Groups to which one call hops beyond those that it returns: others may have nothing that is due. */
const MOST_HOPS = 5_000

export const waitingGroups = (
  db: DatabaseSync,
  { queue, types, after, limit }: GroupsRequest,
  now: Instant,
): string[] => {
  const levels = dueLevels(db, queue, now).levels.filter(
    ({ kind, type }) => kind >= 2 && (types === null || types.includes(type)),
  )
  const distinct = new Map(levels.map(({ type, priority }) => [JSON.stringify([type, priority]), { type, priority }]))
  const cursors = [...distinct.values()].map(({ type, priority }) => new GroupCursor(db, [queue, type, priority], null))
  const found: string[] = []
  let hops = MOST_HOPS + limit
  const collect = (from: string, until: string | null): void => {
    for (const cursor of cursors) cursor.seek(from)
    for (; hops > 0 && found.length < limit; hops--) {
      const group = firstOf(cursors)
      if (group === null || (until !== null && byBytes(group, until) > 0)) return
      const here = cursors.filter((cursor) => cursor.group === group)
      const due = here.filter((cursor) => cursor.isDue(now))
      if (new Merged(due.map((cursor) => cursor.reader(now))).at(0) !== undefined) found.push(group)
      for (const cursor of here) cursor.seek(group)
    }
  }
  collect(after ?? '', null)
  if (after !== null && after !== '') collect('', after)
  return found
}
