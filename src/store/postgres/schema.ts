/** The tables, as numbered migrations under an advisory lock: forward only, never edited after a release. */
import { HoldfastError } from '../../core/errors.ts'
import { claimFunction } from './claim-function.ts'
import type { Executor } from './connection.ts'

/** Neither running nor as it was completed: those are found by indexes of their own. */
export const AT_REST = `status <> 'running' and (status <> 'completed' or updated_at <> completed_at)`

/** Queries must repeat these very words for the planner to see that the index fits. */
export const MOVED = `revision > 1 and ${AT_REST}`

/**
 * `options` holds what was given on submit and is not a default, as JSON text, or null. `history` is JSON objects with
 * commas between, without brackets, so that a move appends to it. Payloads are text, not jsonb, which would reorder keys,
 * round numbers and refuse NUL. Instants are milliseconds. A key is an orphan once its task was removed. Tasks
 * that may expire stand apart in the queue: a crowd of expired ones is passed by with one look at those that live.
 */
const migrations = (schema: string): readonly string[] => [
  `
  create table ${schema}.task (
    id uuid primary key,
    available_at bigint not null,
    created_at bigint not null,
    updated_at bigint not null,
    priority integer not null default 0,
    revision integer not null default 1,
    attempts integer not null default 0,
    retry_count integer not null default 0,
    reschedule_count integer not null default 0,
    replay_count integer not null default 0,
    status text not null default 'pending',
    queue text not null,
    type text not null,
    input text not null,
    history text not null,
    output_encoding text not null default 'json',
    expires_at bigint,
    started_at bigint,
    completed_at bigint,
    lease_claimed_at bigint,
    lease_expires_at bigint,
    lease_token text,
    lease_worker text,
    output text,
    options text,
    idempotency_key text,
    last_error text,
    progress text,
    expired_at bigint,
    cancel_requested_at bigint,
    replayed_as uuid,
    archived_from text
  ) with (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.1, autovacuum_analyze_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

  create index task_ready on ${schema}.task (queue, type, (expires_at is not null), priority desc, available_at, id) where status = 'pending';
  create index task_live on ${schema}.task (queue, type, priority, expires_at) where status = 'pending' and expires_at is not null;
  create index task_lease on ${schema}.task (lease_expires_at) where status = 'running';
  create index task_expiry on ${schema}.task (expires_at) where status = 'pending' and expires_at is not null;
  create index task_ended on ${schema}.task (status, id) where status not in ('pending', 'running', 'completed');
  -- For retention, and for what has changed lately. Tasks that end in one turn share the instant, and with it the entry.
  create index task_completed on ${schema}.task (completed_at) where status = 'completed';

  create table ${schema}.key (
    key text primary key,
    task_id uuid not null,
    hash text not null,
    expires_at bigint not null,
    exact boolean not null,
    orphan boolean not null default false
  );
  create index key_orphan on ${schema}.key (expires_at) where orphan;

  create table ${schema}.document (name text collate "C" primary key, value text not null, version integer not null);
  `,
  // What has changed lately and stands in no other index; a task on its way from submit to completed is never in it.
  `create index task_moved on ${schema}.task (updated_at) where ${MOVED};`,
  `
  -- With words of its own: with those of task_expiry, the planner took that one when statistics were old, and walked it.
  drop index ${schema}.task_live;
  create index task_live on ${schema}.task (queue, type, priority, expires_at) where status || '' = 'pending' and expires_at is not null;
  drop function if exists ${schema}.claim_of_one_type(bigint, text, text[], integer, text, text, bigint, text);
  drop function if exists ${schema}.claim_of_types(bigint, text, text[], integer, text, text, bigint, text);
  drop function if exists ${schema}.next_look(bigint, text, text[]);
  ${claimFunction(schema)}
  `,
]

export const SCHEMA_VERSION = migrations('').length

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
      // Whoever queues up behind somebody's long transaction stops everybody who comes after.
      await executor.query(`set local lock_timeout = '5s'`, [])
      // Not `if not exists`, which asks for the right to make schemas even when there is nothing to make.
      const [exists] = await executor.query('select 1 from pg_catalog.pg_namespace where nspname = $1', [
        nameOf(schema),
      ])
      if (exists === undefined) await executor.query(`create schema ${schema}`, [])
      await executor.query(`create table if not exists ${schema}.meta (name text primary key, value text not null)`, [])
      for (const sql of migrations(schema).slice(found)) await executor.script(sql)
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

const writeMeta = async (executor: Executor, schema: string, name: string, value: string): Promise<void> => {
  await executor.query(
    `insert into ${schema}.meta (name, value) values ($1, $2) on conflict (name) do update set value = excluded.value`,
    [name, value],
  )
}
