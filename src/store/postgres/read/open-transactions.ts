/** The instant up to which all writes are visible. A transaction that commits late makes writes with older timestamps visible. */
import type { Instant } from '../../../core/task.ts'
import type { Executor } from '../connection.ts'

/**
 * Every transaction that has written holds a lock on its own id. pg_locks shows these for every role, while pg_stat_activity hides
 * those of others. A snapshot is not enough: its xmax says which ids have ended, not which were assigned.
 */
const OPEN = `
  select floor(extract(epoch from clock_timestamp()) * 1000)::bigint,
    (select string_agg(transactionid::text, ' ') from pg_catalog.pg_locks where locktype = 'transactionid' and granted and mode = 'ExclusiveLock')`

export class OpenTransactions {
  #askedAt: Instant | null = null
  /** Open transactions, each with an instant at which it had not begun yet, as far as this process has observed. */
  #open: ReadonlyMap<string, Instant> = new Map()

  /** Every transaction that had written something before the returned instant has ended. */
  async visibleUntil(executor: Executor): Promise<Instant> {
    const [row] = await executor.query(OPEN, [])
    const [now, ids] = [Number(row![0]), (row![1] as string | null)?.split(' ') ?? []]
    const before = this.#askedAt ?? now
    this.#open = new Map(ids.map((id) => [id, this.#open.get(id) ?? before]))
    this.#askedAt = now
    return Math.min(now, ...this.#open.values())
  }
}
