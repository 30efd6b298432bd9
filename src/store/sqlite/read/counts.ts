/** How many tasks each queue has in each status, updated in the same transaction as the tasks. */
import type { DatabaseSync } from 'node:sqlite'
import { prepared } from '../file/connection.ts'

/** The differences of one transaction, written once at its end. */
export class Tally {
  readonly #deltas = new Map<string, Map<string, number>>()

  add(queue: string, status: string, delta: number): void {
    let statuses = this.#deltas.get(queue)
    if (statuses === undefined) {
      statuses = new Map()
      this.#deltas.set(queue, statuses)
    }
    statuses.set(status, (statuses.get(status) ?? 0) + delta)
  }

  write(db: DatabaseSync): void {
    const upsert = prepared(
      db,
      'insert into holdfast_count (queue, status, total) values (?, ?, ?) on conflict (queue, status) do update set total = total + excluded.total',
    )
    for (const [queue, statuses] of this.#deltas) {
      for (const [status, delta] of statuses) if (delta !== 0) upsert.run(queue, status, delta)
    }
    this.#deltas.clear()
  }

  clear(): void {
    this.#deltas.clear()
  }
}

export const countOf = (db: DatabaseSync, queue: string | undefined, status: string): number => {
  const sql =
    queue === undefined
      ? 'select coalesce(sum(total), 0) from holdfast_count where status = ?'
      : 'select coalesce(sum(total), 0) from holdfast_count where status = ? and queue = ?'
  const row = prepared(db, sql).get(...(queue === undefined ? [status] : [status, queue])) as unknown as [number]
  return row[0]
}
