/** Submits and changes tasks inside the caller's transaction, synchronously on the caller's connection. */
import type { DatabaseSync } from 'node:sqlite'
import { HoldfastError } from '../../../core/errors.ts'
import type { Instant } from '../../../core/task.ts'
import { decodeWhole } from '../../sql/rows.ts'
import type { JoinedTransaction } from '../../store.ts'
import { asHoldfastError } from '../errors.ts'
import { storeTime } from '../file/clock.ts'
import { readHighWater } from '../file/clock-mark.ts'
import { fileIdentity } from '../file/connection.ts'
import { Tally } from '../read/counts.ts'
import { getRow } from '../read/query.ts'
import { readMeta, schemaVersion } from '../schema.ts'
import { commitRows, encodeChanges } from '../write/commit.ts'
import { type InsertedRow, type InsertRow, insertRow } from '../write/insert.ts'
import { databaseOf } from './callers.ts'

export interface OwnStore {
  readonly path: string
  readonly identity: string
}

/** Inserts all rows or none. */
export const insertInTransaction = (
  tx: unknown,
  own: OwnStore,
  rows: readonly InsertRow[],
  now: Instant | null,
): InsertedRow[] => {
  const db = ownDatabase(tx, own)
  const at = now ?? storeTime(readHighWater(db).at, Date.now())
  return inSavepoint(db, own, (tally) => rows.map((row) => insertRow(db, row, at, tally)))
}

/** Reads and changes tasks in it. */
export const joinedTransaction = (tx: unknown, own: OwnStore): JoinedTransaction => {
  const db = ownDatabase(tx, own)
  const read: JoinedTransaction['read'] = (id) => {
    const row = getRow(db, id)
    return row === null ? null : decodeWhole(row)
  }
  return {
    isSynchronous: true,
    read,
    change: (id, decide) =>
      inSavepoint(db, own, (tally) => {
        const row = getRow(db, id)
        const change = decide(row === null ? null : decodeWhole(row))
        if (change !== null && commitRows(db, encodeChanges([change]), tally, false) !== null)
          throw new HoldfastError('STORE_CONFLICT', `task ${id} changed inside the transaction`, { id })
      }),
  }
}

/** After a failure it rolls back to a savepoint, and the caller's transaction continues. */
const inSavepoint = <T>(db: DatabaseSync, own: OwnStore, work: (tally: Tally) => T): T => {
  const tally = new Tally()
  db.exec('savepoint holdfast')
  try {
    const result = work(tally)
    tally.write(db)
    db.exec('release holdfast')
    return result
  } catch (error) {
    if (db.isTransaction) db.exec('rollback to holdfast; release holdfast')
    throw asHoldfastError(error, `sqlite:${own.path}`)
  }
}

const ownDatabase = (tx: unknown, { path, identity }: OwnStore): DatabaseSync => {
  const db = databaseOf(tx)
  if (db === null)
    throw new HoldfastError(
      'INVALID_OPTION',
      'tx must be a DatabaseSync of node:sqlite, a database of better-sqlite3, or a transaction of drizzle on one of these',
      { field: 'tx' },
    )
  if (!db.isTransaction)
    throw new HoldfastError('INVALID_OPTION', "tx has no open transaction: run 'begin immediate' on it first", {
      field: 'tx',
    })
  const location = db.location()
  const sameFile = location !== null && fileIdentity(location) === fileIdentity(path)
  if (!sameFile || schemaVersion(db) === 0 || readMeta(db, 'identity') !== identity)
    throw new HoldfastError(
      'INVALID_OPTION',
      `tx is open on ${location ?? 'a database in memory'}, not on this client's store ${path}`,
      { field: 'tx' },
    )
  return db
}
