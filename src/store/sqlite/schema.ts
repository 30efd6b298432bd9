/** The tables, as numbered migrations: forward only, never edited after a release. */
import type { DatabaseSync } from 'node:sqlite'
import { HoldfastError } from '../../core/errors.ts'

/**
 * Statuses that few tasks have. Spelt as comparisons: with `in (…)`, every update of any task cost 4 µs more. Queries
 * must repeat these very words for the planner to see that the index fits.
 */
export const SPARSE = `status <> 'pending' and status <> 'running' and status <> 'completed'`

/** In these very words, too. */
export const MOVED = `revision > 1 and status <> 'running'`

/**
 * All names begin with holdfast_, because the file may be the application's own. `options` holds what was given on submit
 * and is not a default, as JSON, or null: most tasks have none. `history` is JSON objects with commas between, without
 * brackets, so that a move appends to it. Tasks that may expire stand apart in the queue (`expiring`): a crowd of expired ones
 * is passed by with one look at those that still live. A key is an orphan once its task was removed: then only its own time is left to it.
 */
const MIGRATIONS: readonly string[] = [
  `
  create table holdfast_meta (name text primary key, value text not null) strict, without rowid;

  create table holdfast_task (
    key integer primary key,
    id text not null unique,
    queue text not null,
    type text not null,
    status text not null default 'pending',
    priority integer not null default 0,
    available_at integer not null,
    expires_at integer,
    revision integer not null default 1,
    attempts integer not null default 0,
    retry_count integer not null default 0,
    reschedule_count integer not null default 0,
    replay_count integer not null default 0,
    lease_token text,
    lease_worker text,
    lease_claimed_at integer,
    lease_expires_at integer,
    cancel_requested_at integer,
    created_at integer not null,
    updated_at integer not null,
    started_at integer,
    completed_at integer,
    expired_at integer,
    archived_from text,
    idempotency_key text,
    replayed_as text,
    options text,
    last_error text,
    progress text,
    output_encoding text not null default 'json',
    output text,
    input text not null,
    history text not null,
    expiring integer generated always as (expires_at is not null) virtual
  ) strict;

  create index holdfast_task_ready on holdfast_task (queue, type, expiring, priority desc, available_at, id) where status = 'pending';
  create index holdfast_task_live on holdfast_task (queue, type, priority, expires_at) where status = 'pending' and expires_at is not null;
  create index holdfast_task_lease on holdfast_task (lease_expires_at) where status = 'running';
  create index holdfast_task_expiry on holdfast_task (expires_at) where status = 'pending' and expires_at is not null;
  create index holdfast_task_ended on holdfast_task (status, id) where ${SPARSE};

  create table holdfast_key (
    key text primary key,
    task_id text not null,
    hash text not null,
    expires_at integer not null,
    exact integer not null,
    orphan integer not null default 0
  ) strict, without rowid;

  create index holdfast_key_orphan on holdfast_key (expires_at) where orphan = 1;

  create table holdfast_count (queue text not null, status text not null, total integer not null, primary key (queue, status)) strict, without rowid;

  create table holdfast_document (name text primary key, value text not null, version integer not null) strict, without rowid;
  `,
  // What has changed lately, but for running tasks and such as never moved, which are found otherwise: one entry a task on its
  // way from submit to completed (docs/decisions/0010).
  `create index holdfast_task_moved on holdfast_task (updated_at) where ${MOVED};`,
]

export const SCHEMA_VERSION = MIGRATIONS.length

/** The version found in the file; 0 when it has no Holdfast tables. Throws SCHEMA_NEWER. */
export const schemaVersion = (db: DatabaseSync): number => {
  const table = db.prepare(`select 1 from sqlite_schema where type = 'table' and name = 'holdfast_meta'`).get()
  if (table === undefined) return 0
  const found = Number(readMeta(db, 'schema_version') ?? 0)
  if (found > SCHEMA_VERSION) {
    throw new HoldfastError(
      'SCHEMA_NEWER',
      `the store has schema ${found}; this release knows up to ${SCHEMA_VERSION}`,
      { found, known: SCHEMA_VERSION },
    )
  }
  return found
}

/** Brings the file up to date. Ten processes may try at once: the lock lets one through, the others find it done. */
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
    // SQLite may have rolled back by itself (a full disk, for one).
    if (db.isTransaction) db.exec('rollback')
    throw error
  }
}

/** A file whose list of tables is damaged looks as if it had none, and must not be taken for a new one. */
const mustBeSound = (db: DatabaseSync): void => {
  const verdict = Object.values(db.prepare('pragma quick_check(1)').get() ?? {})[0]
  if (verdict !== 'ok') throw new HoldfastError('STORE_CORRUPT', `the file is damaged: ${verdict}`)
}

export const readMeta = (db: DatabaseSync, name: string): string | null =>
  (db.prepare('select value from holdfast_meta where name = ?').get(name)?.['value'] as string | undefined) ?? null

export const writeMeta = (db: DatabaseSync, name: string, value: string): void => {
  db.prepare(
    'insert into holdfast_meta (name, value) values (?, ?) on conflict (name) do update set value = excluded.value',
  ).run(name, value)
}
