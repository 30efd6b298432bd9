/** The tables, as numbered migrations under an advisory lock: forward only, never edited after a release. */
import { randomUUID } from 'node:crypto'
import { HoldfastError } from '../../core/errors.ts'
import { FENCE_LEAP, type StoreState } from '../../core/restore.ts'
import type { Executor } from './connection.ts'
import { tables } from './migrations/1-tables.ts'
import { changes } from './migrations/2-changes.ts'
import { claim } from './migrations/3-claim.ts'
import { leaseTtl } from './migrations/4-lease-ttl.ts'

/** Neither running nor as it was completed: those are found by indexes of their own. */
export const AT_REST = `status <> 'running' and (status <> 'completed' or updated_at <> completed_at)`

/** Queries must repeat these very words for the planner to see that the index fits. */
export const MOVED = `revision > 1 and ${AT_REST}`

/** Frozen: test/store/sql/migrations.test.ts has the hash of each. A change of the schema is a new file at the end. */
export const MIGRATIONS: readonly ((schema: string) => string)[] = [tables, changes, claim, leaseTtl]

export const SCHEMA_VERSION = MIGRATIONS.length

const nameOf = (schema: string): string => schema.slice(1, -1)

/**
 * Asked of the catalogue itself: to_regclass answers from a cache, which waiting for an advisory lock does not renew.
 * The version found; 0 when there are no Holdfast tables in this schema. Throws SCHEMA_NEWER.
 */
export const schemaVersion = async (executor: Executor, schema: string): Promise<number> => {
  const [table] = await executor.query(
    `select 1 from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace where n.nspname = $1 and c.relname = 'meta'`,
    [nameOf(schema)],
  )
  if (table === undefined) return 0
  const found = Number((await readMeta(executor, schema, 'schema_version')) ?? 0)
  if (found > SCHEMA_VERSION) {
    throw new HoldfastError(
      'SCHEMA_NEWER',
      `the store has schema ${found}; this release knows up to ${SCHEMA_VERSION}`,
      { found, known: SCHEMA_VERSION },
    )
  }
  return found
}

/**
 * Ten processes may try at once: the lock lets one through, the others find it done. `executor` is one connection. The
 * version that it found.
 */
export const migrate = async (executor: Executor, schema: string, identity: string): Promise<number> => {
  await executor.query('begin isolation level read committed', [])
  try {
    await executor.query(`select pg_advisory_xact_lock(hashtext('holdfast'), hashtext($1))`, [schema])
    const found = await schemaVersion(executor, schema)
    if (found < SCHEMA_VERSION) {
      // A statement that waits behind a long transaction blocks every statement that comes after it.
      await executor.query(`set local lock_timeout = '5s'`, [])
      // Not `if not exists`, which asks for the right to make schemas even when there is nothing to make.
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

/** A new identity, so that processes that still have the old one stop; and fences that no earlier lease had. */
export const acceptRestore = async (executor: Executor, schema: string): Promise<number> => {
  await writeMeta(executor, schema, 'identity', randomUUID())
  const rows = await executor.query(
    `with leapt as (update ${schema}.task set attempts = attempts + $1 where status in ('pending', 'running') returning 1) select count(*)::integer from leapt`,
    [FENCE_LEAP],
  )
  return rows[0]![0] as number
}

const writeMeta = async (executor: Executor, schema: string, name: string, value: string): Promise<void> => {
  await executor.query(
    `insert into ${schema}.meta (name, value) values ($1, $2) on conflict (name) do update set value = excluded.value`,
    [name, value],
  )
}
