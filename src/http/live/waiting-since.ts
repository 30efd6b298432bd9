/** Since when the first ready task waits. */
import type { Client, Instant, TaskQuery } from '../../index.ts'
import { MAX_SCANNED } from '../wire/queries.ts'

/** A task that was created first may have become ready last, after a retry: the longest wait is among this many. */
const LOOKED_AT = 50

/** null: none was found among the tasks that one request may scan. */
export const waitingSince = async (
  client: Client,
  which: Pick<TaskQuery, 'queue' | 'type'>,
): Promise<Instant | null> => {
  const page = { status: 'ready', order: 'oldest', limit: LOOKED_AT, maxScanned: MAX_SCANNED } as const
  const { tasks } = await client.list({ ...which, ...page })
  return tasks.length === 0 ? null : Math.min(...tasks.map(({ availableAt }) => availableAt))
}
