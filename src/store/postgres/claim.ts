/**
 * One look at a queue: lease what is ready in one statement, report what is overdue, say when to look again. What is asked
 * all the time lives in functions, which keep their plan and bring their own settings: planning a claim anew took three times as
 * long as claiming one task, and behind PgBouncer or in a pool of the caller's neither settings nor prepared statements are ours.
 */
import { CLAIMED_NUMBERS, CLAIMED_TEXTS } from '../sql/claimed.ts'
import { COLUMNS } from '../sql/rows.ts'
import type { Want } from '../store.ts'
import type { Value } from './connection.ts'

/** The store's own clock, read once per statement, or the instant given as $1. */
export const CLOCK = `clock as materialized (select coalesce($1::bigint, floor(extract(epoch from clock_timestamp()) * 1000)::bigint) as now)`

const THESE_TYPES = 'select distinct unnest($3::text[])'

const theseOrAllTypes = (schema: string): string => `
    ${THESE_TYPES}
    union all
    (with recursive found(type) as (
      (select type from ${schema}.task where $3::text[] is null and status = 'pending' and queue = $2 order by type limit 1)
      union all
      select (select t.type from ${schema}.task t where t.status = 'pending' and t.queue = $2 and t.type > f.type order by t.type limit 1) from found f where f.type is not null
    ) select type from found where type is not null)`

/**
 * The levels at which something waits: every type that is wanted with each of its priorities, found by jumping along the
 * index, and where it begins there. Within a level only what is due is walked, so neither other types nor tasks of later days stand in the way.
 */
const levels = (schema: string, wanted: string): string => {
  const firstOf = (where: string): string =>
    `lateral (select t.priority, t.available_at from ${schema}.task t where t.status = 'pending' and t.queue = $2 and ${where} order by t.priority desc, t.available_at limit 1) x`
  return `
  wanted(type) as (${wanted}),
  level(type, expiring, priority, begins) as (
    select w.type, e.expiring, x.priority, x.available_at from wanted w, (values (false), (true)) e(expiring), ${firstOf('t.type = w.type and (t.expires_at is not null) = e.expiring')}
    union all
    select l.type, l.expiring, x.priority, x.available_at from level l, ${firstOf('t.type = l.type and (t.expires_at is not null) = l.expiring and t.priority < l.priority')}
  ),
  live as (
    select * from level l where not l.expiring or exists (
      select 1 from ${schema}.task t where t.status = 'pending' and t.queue = $2 and t.type = l.type and t.priority = l.priority and t.expires_at > (select now from clock)
    )
  )`
}

/** From where the level begins: before it lie the entries of all that was claimed lately, until they are vacuumed away. */
const DUE_AT_LEVEL = `t.status = 'pending' and t.queue = $2 and t.type = l.type and (t.expires_at is not null) = l.expiring and t.priority = l.priority and t.available_at >= l.begins and t.available_at <= (select now from clock) and (t.expires_at is null or t.expires_at > (select now from clock))`

/** One type: lock while walking, so that claims beside each other take neighbours. */
const lockWalking = (schema: string): string => `
  picked as materialized (
    select x.place
    from live l cross join lateral (
      select t.ctid as place, t.id, t.available_at from ${schema}.task t where ${DUE_AT_LEVEL} order by t.available_at, t.id limit $4 for update skip locked
    ) x
    order by l.priority desc, x.available_at, x.id limit $4
  )`

/** Several types: merge first without locks, then lock the first that nobody else has; else each type would lock a whole batch. */
const mergeThenLock = (schema: string): string => `
  merged as materialized (
    select x.id, row_number() over (order by l.priority desc, x.available_at, x.id) as n
    from live l cross join lateral (
      select t.id, t.available_at from ${schema}.task t where ${DUE_AT_LEVEL} order by t.available_at, t.id limit $4 * 3 + 8
    ) x
    order by l.priority desc, x.available_at, x.id limit $4 * 3 + 8
  ),
  picked as materialized (
    select t.ctid as place from merged m join ${schema}.task t on t.id = m.id
    where t.status = 'pending' and t.available_at <= (select now from clock) order by m.n limit $4 for update of t skip locked
  )`

/**
 * A row's place, locked until we are done with it, finds it without an index, and makes the token unique in the claim. A row that
 * somebody wrote between our snapshot and our lock is not found by it, and left to the next look.
 */
const PLACE = 't.ctid::text'

const lease = (schema: string, wanted: string, pick: string): string => `
  with recursive ${CLOCK}, ${levels(schema, wanted)}, ${pick},
  same as materialized (select now, ',"at":' || now || $8 || '.' as entry from clock)
  update ${schema}.task t set
    status = 'running', revision = t.revision + 1, attempts = t.attempts + 1, updated_at = same.now, started_at = same.now,
    lease_token = $5 || '.' || ${PLACE}, lease_worker = $6, lease_claimed_at = same.now, lease_expires_at = same.now + $7,
    history = t.history || (',{"n":' || (t.revision + 1) || same.entry || ${PLACE} || '"}')
  from same where t.ctid = any(array(select place from picked))
  returning t.lease_token, ${[...CLAIMED_NUMBERS, ...CLAIMED_TEXTS].map((column) => `t.${column}`).join(', ')}, same.now`

/** The first instant at which something of this queue is due, or anything lapses or expires. */
const next = (schema: string): string => `
  with recursive ${CLOCK}, ${levels(schema, theseOrAllTypes(schema))}
  select least(
    (select min(x.available_at) from live l cross join lateral (
      select t.available_at from ${schema}.task t where t.status = 'pending' and t.queue = $2 and t.type = l.type and (t.expires_at is not null) = l.expiring and t.priority = l.priority and t.available_at >= l.begins and (t.expires_at is null or t.expires_at > (select now from clock)) order by t.available_at limit 1
    ) x),
    (select lease_expires_at from ${schema}.task where status = 'running' order by lease_expires_at limit 1),
    (select expires_at from ${schema}.task where status = 'pending' and expires_at is not null order by expires_at limit 1)
  )`

const CLAIMED = `lease_token text, priority integer, available_at bigint, expires_at bigint, created_at bigint, revision integer,
  attempts integer, retry_count integer, reschedule_count integer, replay_count integer, id uuid, input text, type text, idempotency_key text,
  last_error text, options text, replayed_as uuid, now bigint`

/** One plan for all values: the statements are written so that there is only one good one, and they must not be planned by the table's past. */
const SETTINGS = `set plan_cache_mode = force_generic_plan set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off
  set enable_seqscan = off set jit = off set search_path = pg_catalog`

const kept = (signature: string, returns: string, body: string): string => `
  create function ${signature} returns ${returns} language plpgsql ${SETTINGS} as $holdfast$
  #variable_conflict use_column
  begin
    return query ${body};
  end $holdfast$;`

/** What `claim_of_one_type` does: bench/depth.ts shows its plan. @public */
export const claimOfOneType = (schema: string): string => lease(schema, THESE_TYPES, lockWalking(schema))

const LOOKED_FOR = '(at bigint, queue text, types text[], amount integer, op text, worker text, ttl bigint, entry text)'

/** Part of the schema: a change here is a migration. */
export const claimFunctions = (schema: string): string => `
  ${kept(`${schema}.claim_of_one_type${LOOKED_FOR}`, `table (${CLAIMED})`, claimOfOneType(schema))}
  ${kept(`${schema}.claim_of_types${LOOKED_FOR}`, `table (${CLAIMED})`, lease(schema, theseOrAllTypes(schema), mergeThenLock(schema)))}
  ${kept(`${schema}.next_look(at bigint, queue text, types text[])`, 'setof bigint', next(schema))}`

export interface ClaimStatements {
  readonly one: string
  readonly many: string
  readonly due: string
  readonly next: string
}

export const claimStatements = (schema: string): ClaimStatements => ({
  one: `select * from ${schema}.claim_of_one_type($1, $2, $3, $4, $5, $6, $7, $8)`,
  many: `select * from ${schema}.claim_of_types($1, $2, $3, $4, $5, $6, $7, $8)`,
  due: `
    with ${CLOCK}
    (select ${COLUMNS} from ${schema}.task where status = 'running' and lease_expires_at <= (select now from clock) order by lease_expires_at limit $2)
    union all
    (select ${COLUMNS} from ${schema}.task where status = 'pending' and expires_at <= (select now from clock) order by expires_at limit $2)
    limit $2`,
  next: `select * from ${schema}.next_look($1, $2, $3)`,
})

export const claimValues = ({ queue, types, limit, workerId, op, leaseTtl, now }: Want): Value[] => [
  now,
  queue,
  types,
  limit,
  op,
  workerId,
  leaseTtl,
  // The history's entry, but for what differs from task to task.
  `,"move":"claim","to":"running","by":${JSON.stringify(workerId)},"op":${JSON.stringify(op).slice(0, -1)}`,
]
