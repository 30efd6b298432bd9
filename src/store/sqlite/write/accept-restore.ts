/** The identity and epoch of a store, and the acceptance of a restored one. */
import { randomUUID } from 'node:crypto'
import type { DatabaseSync } from 'node:sqlite'
import { FENCE_LEAP, MAY_RUN_AGAIN, type StoreState } from '../../../core/storage/restore.ts'
import { prepared } from '../file/connection.ts'
import { writeMeta } from '../schema.ts'

const STATE = `select name, value from holdfast_meta where name in ('identity', 'epoch')`

export const readState = (db: DatabaseSync): StoreState => {
  const meta = new Map(prepared(db, STATE).all() as unknown as [string, string][])
  return { identity: meta.get('identity') ?? null, epoch: Number(meta.get('epoch') ?? 0) }
}

/** Writes a new identity, so that processes with the old one stop, and raises the fences above those of any earlier lease. */
export const acceptRestore = (db: DatabaseSync): number => {
  writeMeta(db, 'identity', randomUUID())
  const statuses = MAY_RUN_AGAIN.map((status) => `'${status}'`).join(', ')
  const leap = `update holdfast_task set attempts = attempts + ? where status in (${statuses}) or archived_from in (${statuses})`
  return Number(db.prepare(leap).run(FENCE_LEAP).changes)
}
