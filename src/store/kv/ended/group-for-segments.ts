/** Splits entries into groups that one segment each can hold. */
import type { Instant } from '../../../core/task.ts'
import { MINUTE } from '../records/names.ts'
import { MERGE_AGE } from './merge-segments.ts'
import type { IndexedTask } from './segment-names.ts'
import { MOST_ENTRIES } from './segments.ts'

/**
 * One segment holds entries of one status and queue. Recent entries must also share their minute, because readers select
 * recent segments by their first minute.
 */
export const groupForSegments = <T>(
  items: readonly T[],
  entryOf: (item: T) => IndexedTask,
  now: Instant,
): readonly (readonly T[])[] => {
  const groups = new Map<string, T[][]>()
  for (const item of items) {
    const { status, queue, updatedAt } = entryOf(item)
    const name = `${updatedAt < now - MERGE_AGE ? '' : Math.floor(updatedAt / MINUTE)} ${status} ${queue}`
    const parts = groups.get(name) ?? [[]]
    groups.set(name, parts)
    if (parts.at(-1)!.length === MOST_ENTRIES) parts.push([])
    parts.at(-1)!.push(item)
  }
  return [...groups.values()].flat()
}
