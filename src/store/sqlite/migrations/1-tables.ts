/**
 * All names begin with holdfast_, because the file may be the application's own. `options` holds what was given on submit
 * and is not a default, as JSON, or null: most tasks have none. `history` is JSON objects with commas between, without
 * brackets, so that a move appends to it. Tasks that may expire stand apart in the queue (`expiring`): a crowd of expired ones
 * is passed by with one look at those that still live. A key is an orphan once its task was removed: then only its own time is left to it.
 */
export const TABLES = `

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
  create index holdfast_task_ended on holdfast_task (status, id) where status <> 'pending' and status <> 'running' and status <> 'completed';

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
  `
