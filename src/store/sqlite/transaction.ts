/** Submits inside the caller's transaction, synchronously on the caller's connection. */
import type { DatabaseSync } from 'node:sqlite'
import { HoldfastError } from '../../core/errors.ts'
import type { Instant } from '../../core/task.ts'
import { storeTime } from './clock.ts'
import { readHighWater } from './clock-mark.ts'
import { fileIdentity } from './connection.ts'
import { asHoldfastError } from './errors.ts'
import { Tally } from './read/counts.ts'
import { readMeta, schemaVersion } from './schema.ts'
import { type InsertedRow, type InsertRow, insertRow } from './write/insert.ts'

export interface OwnStore {
  readonly path: string
  readonly identity: string
}

/** Inserts all rows or none. After a failure it rolls back to a savepoint, and the caller's transaction continues. */
export const insertInTransaction = (
  tx: DatabaseSync,
  own: OwnStore,
  rows: readonly InsertRow[],
  now: Instant | null,
): InsertedRow[] => {
  mustBeOurs(tx, own)
  const tally = new Tally()
  const at = now ?? storeTime(readHighWater(tx).at, Date.now())
  tx.exec('savepoint holdfast')
  try {
    const inserted = rows.map((row) => insertRow(tx, row, at, tally))
    tally.write(tx)
    tx.exec('release holdfast')
    return inserted
  } catch (error) {
    if (tx.isTransaction) tx.exec('rollback to holdfast; release holdfast')
    throw asHoldfastError(error, `sqlite:${own.path}`)
  }
}

const mustBeOurs = (tx: DatabaseSync, { path, identity }: OwnStore): void => {
  if (typeof tx?.prepare !== 'function' || typeof tx.exec !== 'function') {
    throw new HoldfastError('INVALID_OPTION', 'tx must be a DatabaseSync of node:sqlite', { field: 'tx' })
  }
  if (!tx.isTransaction) {
    throw new HoldfastError('INVALID_OPTION', "tx has no open transaction: run 'begin immediate' on it first", {
      field: 'tx',
    })
  }
  const location = tx.location()
  const sameFile = location !== null && fileIdentity(location) === fileIdentity(path)
  if (!sameFile || schemaVersion(tx) === 0 || readMeta(tx, 'identity') !== identity) {
    throw new HoldfastError(
      'INVALID_OPTION',
      `tx is open on ${location ?? 'a database in memory'}, not on this client's store ${path}`,
      { field: 'tx' },
    )
  }
}
