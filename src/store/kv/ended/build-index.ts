/** Builds the index for a store that is older than the index. After a crash it continues: entries that were written stay. */
import { isContactLost } from '../../../core/errors.ts'
import type { Instant } from '../../../core/task.ts'
import { isTerminal } from '../../../core/task.ts'
import type { RetryingKeyValue } from '../access/retrying-key-value.ts'
import { idOfTaskKey, TASKS } from '../records/names.ts'
import { isLive, type Tasks } from '../records/tasks.ts'
import { groupForSegments } from './group-for-segments.ts'
import type { MaintenanceLease } from './index-state.ts'
import { type IndexedTask, indexedTask, statusIdentityOf } from './segment-names.ts'
import type { Segments } from './segments.ts'

const PAGE = 1_000
/** Few, because this runs beside other work. */
const AT_ONCE = 8
/** The lease to maintain the index. Every page renews it. */
export const LEASE_TTL = 300_000

interface Parts {
  readonly kv: RetryingKeyValue
  readonly tasks: Tasks
  readonly segments: Segments
  now(): Promise<Instant>
  isStopped(): boolean
}

/** Resolves to true when the index is complete. */
export const buildIndex = async (
  { kv, tasks, segments, now, isStopped }: Parts,
  lease: MaintenanceLease,
): Promise<boolean> => {
  const known = new Set<string>()
  for (const name of await segments.names())
    for (const entry of await segments.read(name)) known.add(statusIdentityOf(entry))
  for (let after: string | undefined; ; ) {
    const keys = await kv.list(TASKS, after === undefined ? { limit: PAGE } : { limit: PAGE, after })
    if (isStopped()) return false
    const missing: IndexedTask[] = []
    for (let i = 0; i < keys.length; i += AT_ONCE)
      for (const entry of await Promise.all(keys.slice(i, i + AT_ONCE).map((key) => endedAt(tasks, key))))
        if (entry !== null && !known.has(statusIdentityOf(entry))) missing.push(entry)
    for (const group of groupForSegments(missing, (entry) => entry, await now())) await segments.write('added', group)
    const isLast = keys.length < PAGE
    const isHeld = await lease.renew(isLast ? 0 : (await now()) + LEASE_TTL, isLast)
    if (isLast || !isHeld) return isHeld
    after = keys.at(-1)!
  }
}

/** An unreadable task is in no list either. */
const endedAt = async (tasks: Tasks, key: string): Promise<IndexedTask | null> => {
  try {
    const stored = await tasks.read(idOfTaskKey(key))
    return isLive(stored) && isTerminal(stored.task.status) ? indexedTask(stored.task) : null
  } catch (error) {
    if (isContactLost(error)) throw error
    return null
  }
}
