/**
 * `options` holds what was given on submit and is not a default, as JSON text, or null. `history` is JSON objects with
 * commas between, without brackets, so that a move appends to it. Payloads are text, not jsonb, which would reorder keys,
 * round numbers and refuse NUL. Instants are milliseconds. A key is an orphan once its task was removed. Tasks
 * that may expire stand apart in the queue: a crowd of expired ones is passed by with one look at those that live.
 */
export const tables = (schema: string): string => `
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
  `
