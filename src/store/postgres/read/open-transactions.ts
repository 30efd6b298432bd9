/** Up to which instant all writes are visible: a transaction that commits late shows writes with an older time. */
import type { Instant } from '../../../core/task.ts'
import type { Executor } from '../connection.ts'

/**
 * Every transaction that has written holds the lock of its own id, and pg_locks shows those of every role, where
 * pg_stat_activity hides them. A snapshot would not do: its xmax says which ids have ended, not which were given.
 */
const OPEN = `
  select floor(extract(epoch from clock_timestamp()) * 1000)::bigint,
    (select string_agg(transactionid::text, ' ') from pg_catalog.pg_locks where locktype = 'transactionid' and granted and mode = 'ExclusiveLock')`

export class OpenTransactions {
  #askedAt: Instant | null = null
  /** Open transactions, each with an instant at which it had not begun, as far as we have watched. */
  #open: ReadonlyMap<string, Instant> = new Map()

  /** Every transaction that had written something by then has ended. */
  async visibleUntil(executor: Executor): Promise<Instant> {
    const [row] = await executor.query(OPEN, [])
    const [now, ids] = [Number(row![0]), (row![1] as string | null)?.split(' ') ?? []]
    const before = this.#askedAt ?? now
    this.#open = new Map(ids.map((id) => [id, this.#open.get(id) ?? before]))
    this.#askedAt = now
    return Math.min(now, ...this.#open.values())
  }
}
