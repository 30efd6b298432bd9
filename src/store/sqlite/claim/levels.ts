/**
 * The due levels of a queue, for claims of any type. Types and priorities are found by jumping along the index, a bounded number in one
 * look. If there are more, looks take turns: the next one begins where this one ended.
 */
import type { DatabaseSync } from 'node:sqlite'
import type { Instant } from '../../../core/task.ts'
import { prepared } from '../file/connection.ts'
import type { LineKind } from './lines.ts'

/** The most levels in one look, at about 5 µs each. A level is a type with one of its priorities, in one line. */
const MOST_LEVELS = 5_000
/** The most due levels in one look: each is read for candidates. */
const MOST_DUE = 500

interface Level {
  readonly type: string
  readonly kind: LineKind
  readonly priority: number
}

const first = (where: string): string =>
  `(select key from holdfast_task indexed by holdfast_task_ready where status = 'pending' and queue = ?1 and ${where} order by type, line, priority desc, available_at limit 1)`

const LEVELS = `
  with recursive level(key) as (
    select ${first('type > ?2')}
    union all
    select coalesce(
      ${first('type = t.type and line = t.line and priority < t.priority')},
      ${first('type = t.type and line > t.line')},
      ${first('type > t.type')}
    ) from level cross join holdfast_task t on t.key = level.key
  )
  select t.type, t.line, t.priority, t.available_at from level cross join holdfast_task t on t.key = level.key`

interface Turn {
  /** The next look begins after this type. */
  after: string
  /** When the next task of the levels that this round has passed is due. */
  later: Instant | null
}

const turns = new WeakMap<DatabaseSync, Map<string, Turn>>()

export interface DueLevels {
  readonly levels: readonly Level[]
  /** When the next task is due; now, if there are more levels to look at. */
  readonly later: Instant | null
  /** Makes the next look continue from here. */
  turnOver(): void
}

export const dueLevels = (db: DatabaseSync, queue: string, now: Instant): DueLevels => {
  const known = turns.get(db)?.get(queue)
  const levels: Level[] = []
  let later = known?.later ?? null
  let [passed, complete, current] = [0, '', '']
  let isCut = false
  for (const row of prepared(db, LEVELS).iterate(queue, known?.after ?? '')) {
    const [type, kind, priority, begins] = row as unknown as [string, LineKind, number, Instant]
    if (type !== current) complete = current
    isCut = passed >= MOST_LEVELS || levels.length >= MOST_DUE
    if (isCut) break
    passed++
    current = type
    if (begins <= now) levels.push({ type, kind, priority })
    else later = later === null ? begins : Math.min(later, begins)
  }
  // Nothing is left after where this look began, and it did not begin at the front: the front is next.
  const isWhole = !isCut
  return {
    levels,
    later: isWhole ? later : now,
    turnOver: () => {
      if (isWhole && known === undefined) return
      const queues = turns.get(db) ?? new Map<string, Turn>()
      turns.set(db, queues)
      if (isWhole) queues.delete(queue)
      // A type that was read only in part is read again, unless it fills a look by itself.
      else queues.set(queue, { after: complete === '' ? current : complete, later })
    },
  }
}
