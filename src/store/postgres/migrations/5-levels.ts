/**
 * What the claim functions of migration 5 have in common. A *level* is a type with one of its priorities, in one of four *lines*: tasks that
 * may expire stand apart from those that may not, and tasks with a group from those without. So a claim finds those without a group behind
 * any number of others, and a crowd of expired tasks is passed by with one look at those that live.
 */

/** The third column of the indexes task_ready and task_live. */
export const lineOf = (row: string): string =>
  `((${row}expires_at is not null)::integer + 2 * (${row}task_group is not null)::integer)`

/** The words of the index task_turn. They fit no other index, so the planner has no choice. */
export const WAITS_IN_GROUP = `t.status || '' = 'pending' and t.task_group is not null and t.queue = of_queue`

/** Tasks without a group get no entry in an index that is new here. */
export const indexes = (schema: string): string => `
  alter table ${schema}.task add column task_group text collate "C";
  drop index ${schema}.task_ready;
  create index task_ready on ${schema}.task (queue, type, ${lineOf('')}, priority desc, available_at, id) where status = 'pending';
  drop index ${schema}.task_live;
  create index task_live on ${schema}.task (queue, type, ${lineOf('')}, priority, expires_at) where status || '' = 'pending' and expires_at is not null;
  create index task_turn on ${schema}.task (queue, type, priority desc, task_group, available_at, id) where status || '' = 'pending' and task_group is not null;
  create index task_running on ${schema}.task (queue, task_group) where status || '' = 'running' and task_group is not null;`

/** In the words of the index task_ready. */
export const inLevel = (type: string, line: string): string =>
  `t.status = 'pending' and t.queue = of_queue and t.type = ${type} and ${lineOf('t.')} = ${line}`

/**
 * The levels with the instant at which each begins, found by jumping along the index: neither other types nor future tasks are
 * walked. Whether anything has a group is asked once. A level of which everything has expired is left out; that is asked in the words of
 * the index task_live, which fit no other index, and in a form that cannot become a hash of all tasks with an expiry.
 */
export const levels = (schema: string): string => {
  const first = (where: string): string =>
    `lateral (select t.priority, t.available_at from ${schema}.task t where ${where} order by t.priority desc, t.available_at limit 1) x`
  return `
        with recursive level(type, line, priority, begins) as (
          select w.type, e.line, x.priority, x.available_at
          from unnest(types) w(type), (values (0), (1), (2), (3)) e(line), ${first(inLevel('w.type', 'e.line'))}
          where e.line < 2 or (select true from ${schema}.task t where ${WAITS_IN_GROUP} limit 1)
          union all
          select l.type, l.line, x.priority, x.available_at from level l, ${first(`${inLevel('l.type', 'l.line')} and t.priority < l.priority`)}
        ),
        live as (
          select l.* from level l where l.line in (0, 2) or (
            select true from ${schema}.task t
            where t.status || '' = 'pending' and t.queue = of_queue and t.type = l.type and ${lineOf('t.')} = l.line and t.priority = l.priority and t.expires_at > instant limit 1
          )
        )`
}

/** The first instant at which any lease lapses or any task expires, of any queue. */
export const overdueFrom = (schema: string): string => `
          (select t.lease_expires_at from ${schema}.task t where t.status = 'running' order by t.lease_expires_at limit 1),
          (select t.expires_at from ${schema}.task t where t.status = 'pending' and t.expires_at is not null order by t.expires_at limit 1)`

/** A row's place makes the token unique in the claim. */
export const lease = (schema: string, places: string): string => `
          update ${schema}.task t set
            status = 'running', revision = t.revision + 1, attempts = t.attempts + 1, updated_at = instant, started_at = instant,
            lease_token = op || '.' || t.ctid::text, lease_worker = worker, lease_claimed_at = instant, lease_expires_at = instant + ttl, lease_ttl = ttl,
            history = t.history || (',{"n":' || (t.revision + 1) || entry || t.ctid::text || '"}')
          where t.ctid = any(array(${places}
          ))
          returning t.lease_token, t.priority, t.available_at, t.expires_at, t.created_at, t.revision, t.attempts, t.retry_count, t.reschedule_count, t.replay_count,
            t.id, t.input, t.type, t.idempotency_key, t.last_error, t.options, t.replayed_as, t.task_group, instant`

interface Told {
  readonly availableAt?: string
  readonly lastError?: string
  readonly options?: string
}

/** As many columns as a leased task, all null but these. */
export const withoutTask = ({
  availableAt = 'null::bigint',
  lastError = 'null::text',
  options = 'null::text',
}: Told) => `
        select null::text, null::integer, ${availableAt}, null::bigint, null::bigint, null::integer, null::integer, null::integer, null::integer, null::integer,
          null::uuid, null::text, null::text, null::text, ${lastError}, ${options}, null::uuid, null::text, instant`

export const LEASED = `lease_token text, priority integer, available_at bigint, expires_at bigint, created_at bigint, revision integer,
    attempts integer, retry_count integer, reschedule_count integer, replay_count integer, id uuid, input text, type text, idempotency_key text,
    last_error text, options text, replayed_as uuid, task_group text, now bigint`

/** One plan for all values: the statements are written so that there is only one good one, and they must not be planned by the table's past. */
export const SETTINGS = `set plan_cache_mode = force_generic_plan set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
    set enable_seqscan = off set jit = off set search_path = pg_catalog`

export const NOW = `floor(extract(epoch from clock_timestamp()) * 1000)::bigint`
