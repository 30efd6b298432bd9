/** The tables, as numbered migrations: forward only, never edited after a release. */
import type { DatabaseSync } from 'node:sqlite'
import { HoldfastError } from '../../core/errors.ts'
import { refuseNewer } from '../../core/storage/schema-version.ts'
import { RECOVER } from './errors.ts'
import { TABLES } from './migrations/1-tables.ts'
import { CHANGES } from './migrations/2-changes.ts'
import { LEASE_TTL } from './migrations/3-lease-ttl.ts'
import { GROUPS } from './migrations/4-groups.ts'
import { JOURNAL } from './migrations/5-journal.ts'

/**
 * Statuses that few tasks have. Written as comparisons, because with `in (…)` every update of any task cost 4 µs more. Queries
 * must repeat this text exactly, or the planner does not use the index.
 */
export const SPARSE = `status <> 'pending' and status <> 'running' and status <> 'completed'`

/** Queries must repeat this text exactly too. */
export const MOVED = `revision > 1 and status <> 'running'`

/** Frozen: test/store/sql/migrations.test.ts has the hash of each. To change the schema, add a file at the end. */
export const MIGRATIONS: readonly string[] = [TABLES, CHANGES, LEASE_TTL, GROUPS, JOURNAL]

export const SCHEMA_VERSION = MIGRATIONS.length

/** Returns the version of the file; 0 if it has no Holdfast tables. Throws SCHEMA_NEWER. */
export const schemaVersion = (db: DatabaseSync): number => {
  const table = db.prepare(`select 1 from sqlite_schema where type = 'table' and name = 'holdfast_meta'`).get()
  if (table === undefined) return 0
  const found = Number(readMeta(db, 'schema_version') ?? 0)
  refuseNewer('the store', found, SCHEMA_VERSION)
  return found
}

/** Brings the file up to date. Several processes may try at once: the lock lets one through, and the others find it done. */
export const migrate = (db: DatabaseSync, identity: string): boolean => {
  if (schemaVersion(db) === SCHEMA_VERSION) return false
  db.exec('begin exclusive')
  try {
    const found = schemaVersion(db)
    if (found === 0) mustBeSound(db)
    for (const sql of MIGRATIONS.slice(found)) db.exec(sql)
    writeMeta(db, 'schema_version', String(SCHEMA_VERSION))
    if (found === 0) writeMeta(db, 'identity', identity)
    db.exec('commit')
    return found === 0
  } catch (error) {
    // SQLite may have rolled back already, for example because the disk is full.
    if (db.isTransaction) db.exec('rollback')
    throw error
  }
}

/** A file whose schema is damaged looks empty, and must not be treated as a new one. */
const mustBeSound = (db: DatabaseSync): void => {
  const verdict = Object.values(db.prepare('pragma quick_check(1)').get() ?? {})[0]
  if (verdict !== 'ok') throw new HoldfastError('STORE_CORRUPT', `the file is damaged: ${verdict}`, { advice: RECOVER })
}

export const readMeta = (db: DatabaseSync, name: string): string | null =>
  (db.prepare('select value from holdfast_meta where name = ?').get(name)?.['value'] as string | undefined) ?? null

export const writeMeta = (db: DatabaseSync, name: string, value: string): void => {
  db.prepare(
    'insert into holdfast_meta (name, value) values (?, ?) on conflict (name) do update set value = excluded.value',
  ).run(name, value)
}
