/** Endings of one turn that are alike, as most are: one statement writes them all, and only their keys are sent to the thread. */
import type { DatabaseSync } from 'node:sqlite'
import { type Change, type ChangeSet, HISTORY_KEPT, isInHistory } from '../../../core/task.ts'
import { assignmentsOf, type Cell, entryBeforeOp, isPlain, isSameEntry, pushValues, shapeOf } from '../../sql/rows.ts'
import { prepared } from '../file/connection.ts'
import type { Tally } from '../read/counts.ts'
import { withOption } from './options.ts'

export interface Endings {
  readonly text: string
  /** Values bound before the keys (as JSON), and after them. */
  readonly before: readonly Cell[]
  readonly keys: string
  readonly after: readonly Cell[]
  readonly count: number
  readonly queue: string
  readonly from: string
  readonly to: string
}

interface Group {
  readonly first: Change
  /** Each token is this text followed by the row's key. */
  readonly tokenStart: string
  readonly keys: number[]
}

/** Smaller groups are no faster than row by row. */
const ENOUGH = 8
/** A batch usually comes from few claims and few instants. With more groups than this, grouping gains nothing. */
const MOST_GROUPS = 8

const texts = new Map<string, string>()

const textFor = (set: ChangeSet): string => {
  const shape = shapeOf(set)
  let text = texts.get(shape)
  if (text === undefined) {
    text =
      `update holdfast_task set ${assignmentsOf(set, () => '?', withOption)}, revision = revision + 1, history = history || ? || lease_token || '"}'` +
      ` where key in (select value from json_each(?)) and lease_token = ? || key and revision = ?`
    texts.set(shape, text)
  }
  return text
}

/** The start of the lease token if the change is the end of a run, whose entry has the token as its op; null for any other change. */
const tokenStartOf = ({ from, entry, leaseExpiresAt, journal, mark }: Change): string | null => {
  const { op, n } = entry
  if (from !== 'running' || leaseExpiresAt !== undefined || n > HISTORY_KEPT || typeof mark !== 'number') return null
  if (journal !== undefined || !isInHistory(entry)) return null
  const start = op.slice(0, op.lastIndexOf('.') + 1)
  return start !== '' && op === start + mark && isPlain(op) ? start : null
}

const isLike = (
  { first, tokenStart }: Group,
  { queue, revision, from, set, entry, leaseExpiresAt, journal, mark }: Change,
): boolean =>
  entry.op === tokenStart + mark &&
  revision === first.revision &&
  queue === first.queue &&
  from === first.from &&
  leaseExpiresAt === undefined &&
  journal === undefined &&
  isSameEntry(first.entry, entry, 'op') &&
  isSameSet(first.set, set)

const isSameSet = (a: ChangeSet, b: ChangeSet): boolean => {
  for (const name in a) if (a[name as 'status'] !== b[name as 'status']) return false
  for (const name in b) if (!(name in a)) return false
  return true
}

const encode = ({ first: { queue, revision, from, set, entry }, tokenStart, keys }: Group): Endings => {
  const before: Cell[] = []
  pushValues(before, set)
  before.push(entryBeforeOp(entry))
  return {
    text: textFor(set),
    before,
    keys: JSON.stringify(keys),
    after: [tokenStart, revision],
    count: keys.length,
    queue,
    from,
    to: set.status ?? from,
  }
}

/** null if they are not alike enough. */
export const encodeEndings = (changes: readonly Change[]): Endings[] | null => {
  const most = Math.min(changes.length / ENOUGH, MOST_GROUPS)
  const groups: Group[] = []
  for (const change of changes) {
    const like = groups.find((group) => isLike(group, change))
    if (like !== undefined) like.keys.push(change.mark as number)
    else {
      const tokenStart = tokenStartOf(change)
      if (tokenStart === null || groups.length + 1 > most) return null
      groups.push({ first: change, tokenStart, keys: [change.mark as number] })
    }
  }
  return groups.map(encode)
}

/** Writes all of them; or none and returns false, if another process has written one first. The caller then writes row by row. */
export const commitEndings = (db: DatabaseSync, endings: readonly Endings[], tally: Tally): boolean => {
  db.exec('savepoint holdfast_endings')
  const areWritten = endings.every(
    ({ text, before, keys, after, count }) => prepared(db, text).run(...before, keys, ...after).changes === count,
  )
  if (!areWritten) db.exec('rollback to holdfast_endings')
  db.exec('release holdfast_endings')
  if (!areWritten) return false
  for (const { queue, from, to, count } of endings) {
    tally.add(queue, from, -count)
    tally.add(queue, to, count)
  }
  return true
}
