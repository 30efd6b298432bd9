/**
 * Keys of the index of ended tasks. The name of a segment has everything that counting and filtering need, so that few are
 * read.
 */
import type { Instant, TaskRecord, TaskStatus } from '../../../core/task.ts'
import { newNonce } from '../records/bodies.ts'
import { escaped, MINUTE, minuteOf, unescaped } from '../records/names.ts'

export const ENDED = 'ended/'
/** Whether the index is complete, and which process maintains it. */
export const INDEX_STATE = 'ended.json'

/** An entry of the index. Its segment names the status and queue. Together they answer every filter except tags. */
export interface EndedEntry {
  readonly id: string
  /** The revision of the move that ended the task. If the task ends again, that is another entry. */
  readonly revision: number
  readonly type: string
  readonly createdAt: Instant
  readonly completedAt: Instant | null
  readonly updatedAt: Instant
}

/** An entry with the status and queue of its segment. */
export interface IndexedTask extends EndedEntry {
  readonly status: TaskStatus
  readonly queue: string
}

/**
 * One object of the index, for one status and queue. Segments of kind `removed` list tasks that left the status after they
 * were added. Their counts are subtracted.
 */
export interface SegmentName {
  readonly key: string
  readonly kind: 'added' | 'removed'
  readonly status: TaskStatus
  readonly queue: string
  /** The first and last instant of the minutes in which its tasks were updated. */
  readonly from: Instant
  readonly to: Instant
  /** No task of the segment completed before this. Archived tasks completed long before their last move. */
  readonly completedFrom: Instant
  readonly low: string
  readonly high: string
  readonly count: number
}

export const indexedTask = (task: TaskRecord): IndexedTask => {
  const { id, revision, type, createdAt, completedAt, updatedAt, status, queue } = task
  return { id, revision, type, createdAt, completedAt, updatedAt, status, queue }
}

export const identityOf = ({ id, revision }: EndedEntry): string => `${id} ${revision}`

export const statusIdentityOf = (entry: IndexedTask): string => `${entry.status} ${identityOf(entry)}`

/** Keys of segments that begin in this minute or later sort after this text. */
export const keysFrom = (instant: Instant): string => `${ENDED}${minuteOf(instant)}`

/** The entries must share status and queue. */
export const segmentFor = (kind: SegmentName['kind'], entries: readonly IndexedTask[]): SegmentName => {
  const { status, queue } = entries[0]!
  let [low, high] = [entries[0]!.id, entries[0]!.id]
  let [from, to] = [entries[0]!.updatedAt, entries[0]!.updatedAt]
  let completedFrom = from
  for (const { id, updatedAt, completedAt } of entries) {
    if (id < low) low = id
    if (id > high) high = id
    from = Math.min(from, updatedAt)
    to = Math.max(to, updatedAt)
    completedFrom = Math.min(completedFrom, completedAt ?? updatedAt)
  }
  const count = entries.length
  const sign = kind === 'removed' ? '-' : ''
  const times = `${minuteOf(to)}~${minuteOf(completedFrom)}`
  const name = `${times}~${low}~${high}~${sign}${count}~${newNonce()}`
  return parseSegment(`${keysFrom(from)}/${status}/${escaped(queue)}/${name}`)!
}

/** null: not a key of Holdfast. */
export const parseSegment = (key: string): SegmentName | null => {
  const [from, status, queue, name, others] = key.slice(ENDED.length).split('/')
  const [to, completedFrom, low, high, count, nonce] = name?.split('~') ?? []
  if (nonce === undefined || others !== undefined) return null
  return {
    key,
    kind: count!.startsWith('-') ? 'removed' : 'added',
    status: status as TaskStatus,
    queue: unescaped(queue!),
    from: Number(from) * MINUTE,
    to: (Number(to) + 1) * MINUTE - 1,
    completedFrom: Number(completedFrom) * MINUTE,
    low: low!,
    high: high!,
    count: Math.abs(Number(count)),
  }
}
