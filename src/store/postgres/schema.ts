/** The tables, as numbered migrations under an advisory lock: forward only, never edited after a release. */
import { randomUUID } from 'node:crypto'
import { FENCE_LEAP, MAY_RUN_AGAIN, type StoreState } from '../../core/storage/restore.ts'
import { refuseNewer } from '../../core/storage/schema-version.ts'
import type { Executor } from './connection.ts'
import { tables } from './migrations/1-tables.ts'
import { changes } from './migrations/2-changes.ts'
import { claim } from './migrations/3-claim.ts'
import { leaseTtl } from './migrations/4-lease-ttl.ts'
import { groups } from './migrations/5-groups.ts'
import { claimInOrder } from './migrations/6-claim-in-order.ts'
import { journal } from './migrations/6-journal.ts'

/** Neither running nor unchanged since completion: those have other indexes. */
export const AT_REST = `status <> 'running' and (status <> 'completed' or updated_at <> completed_at)`

/** Queries must repeat this text exactly, or the planner does not use the index. */
export const MOVED = `revision > 1 and ${AT_REST}`

/** Frozen: test/store/sql/migrations.test.ts has the hash of each. To change the schema, add a file at the end. */
export const MIGRATIONS: readonly ((schema: string) => string)[] = [
  tables,
  changes,
  claim,
  leaseTtl,
  groups,
  (schema) => journal(schema) + claimInOrder(schema),
]

export const SCHEMA_VERSION = MIGRATIONS.length

const nameOf = (schema: string): string => schema.slice(1, -1)

/**
 * Returns the version of the schema; 0 if it has no Holdfast tables. Throws SCHEMA_NEWER. It reads the catalogue itself, because
 * to_regclass uses a cache that is not refreshed by waiting for an advisory lock.
 */
export const schemaVersion = async (executor: Executor, schema: string): Promise<number> => {
  const [table] = await executor.query(
    `select 1 from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace where n.nspname = $1 and c.relname = 'meta'`,
    [nameOf(schema)],
  )
  if (table === undefined) return 0
  const found = Number((await readMeta(executor, schema, 'schema_version')) ?? 0)
  refuseNewer('the store', found, SCHEMA_VERSION)
  return found
}

/**
 * Several processes may try at once: the lock lets one through, and the others find it done. `executor` must be one connection.
 * Returns the version that it found.
 */
export const migrate = async (executor: Executor, schema: string, identity: string): Promise<number> => {
  await executor.query('begin isolation level read committed', [])
  try {
    await executor.query(`select pg_advisory_xact_lock(hashtext('holdfast'), hashtext($1))`, [schema])
    const found = await schemaVersion(executor, schema)
    if (found < SCHEMA_VERSION) {
      // A statement that waits for a lock behind a long transaction blocks every statement after it.
      await executor.query(`set local lock_timeout = '5s'`, [])
      // Not `if not exists`, which needs the privilege to create schemas even if the schema exists.
      const [exists] = await executor.query('select 1 from pg_catalog.pg_namespace where nspname = $1', [
        nameOf(schema),
      ])
      if (exists === undefined) await executor.query(`create schema ${schema}`, [])
      await executor.query(`create table if not exists ${schema}.meta (name text primary key, value text not null)`, [])
      for (const migration of MIGRATIONS.slice(found)) await executor.script(migration(schema))
      await writeMeta(executor, schema, 'schema_version', String(SCHEMA_VERSION))
      if (found === 0) await writeMeta(executor, schema, 'identity', identity)
    }
    await executor.query('commit', [])
    return found
  } catch (error) {
    await executor.query('rollback', []).catch(() => {})
    throw error
  }
}

export const readMeta = async (executor: Executor, schema: string, name: string): Promise<string | null> =>
  ((await executor.query(`select value from ${schema}.meta where name = $1`, [name]))[0]?.[0] as string | undefined) ??
  null

export const readState = async (executor: Executor, schema: string): Promise<StoreState> => {
  const rows = await executor.query(`select name, value from ${schema}.meta where name in ('identity', 'epoch')`, [])
  const meta = new Map(rows.map(([name, value]) => [name, value as string]))
  return { identity: meta.get('identity') ?? null, epoch: Number(meta.get('epoch') ?? 0) }
}

export const growEpoch = async (executor: Executor, schema: string): Promise<number> => {
  const [row] = await executor.query(
    `insert into ${schema}.meta as m (name, value) values ('epoch', '1') on conflict (name) do update set value = (m.value::bigint + 1)::text returning value`,
    [],
  )
  return Number(row![0])
}

/** Writes a new identity, so that processes with the old one stop, and raises the fences above those of any earlier lease. */
export const acceptRestore = async (executor: Executor, schema: string): Promise<number> => {
  await writeMeta(executor, schema, 'identity', randomUUID())
  const rows = await executor.query(
    `with leapt as (update ${schema}.task set attempts = attempts + $1 where status = any($2) or archived_from = any($2) returning 1) select count(*)::integer from leapt`,
    [FENCE_LEAP, MAY_RUN_AGAIN],
  )
  return rows[0]![0] as number
}

const writeMeta = async (executor: Executor, schema: string, name: string, value: string): Promise<void> => {
  await executor.query(
    `insert into ${schema}.meta (name, value) values ($1, $2) on conflict (name) do update set value = excluded.value`,
    [name, value],
  )
}
