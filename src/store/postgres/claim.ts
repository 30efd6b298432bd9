/** One look at a queue: lease what is ready in one statement, report what is overdue, say when to look again. */
import type { Instant } from '../../core/task.ts'
import { CLAIMED_NUMBERS, CLAIMED_TEXTS } from '../sql/claimed.ts'
import { COLUMNS } from '../sql/rows.ts'
import type { Want } from '../store.ts'
import type { Value } from './connection.ts'

/** The store's own clock, read once per statement, or the instant given as $1. */
export const CLOCK = `clock as materialized (select coalesce($1::bigint, floor(extract(epoch from clock_timestamp()) * 1000)::bigint) as now)`

/**
 * The levels at which something waits: every type that is wanted with each of its priorities, found by jumping along the
 * index. Within a level only what is due is walked, so neither other types nor tasks of later days stand in the way.
 */
const levels = (schema: string): string => `
  wanted(type) as (
    select distinct unnest($3::text[])
    union all
    (with recursive found(type) as (
      (select type from ${schema}.task where $3::text[] is null and status = 'pending' and queue = $2 order by type limit 1)
      union all
      select (select t.type from ${schema}.task t where t.status = 'pending' and t.queue = $2 and t.type > f.type order by t.type limit 1) from found f where f.type is not null
    ) select type from found where type is not null)
  ),
  level(type, expiring, priority) as (
    select w.type, e.expiring, (select t.priority from ${schema}.task t where t.status = 'pending' and t.queue = $2 and t.type = w.type and t.expiring = e.expiring order by t.priority desc limit 1)
    from wanted w, (values (false), (true)) e(expiring)
    union all
    select l.type, l.expiring, (select t.priority from ${schema}.task t where t.status = 'pending' and t.queue = $2 and t.type = l.type and t.expiring = l.expiring and t.priority < l.priority order by t.priority desc limit 1)
    from level l where l.priority is not null
  ),
  live(type, expiring, priority) as (
    select * from level l where l.priority is not null and (not l.expiring or exists (
      select 1 from ${schema}.task t where t.status = 'pending' and t.queue = $2 and t.type = l.type and t.priority = l.priority and t.expires_at > (select now from clock)
    ))
  )`

const DUE_AT_LEVEL = `t.status = 'pending' and t.queue = $2 and t.type = l.type and t.expiring = l.expiring and t.priority = l.priority and t.available_at <= (select now from clock) and (t.expires_at is null or t.expires_at > (select now from clock))`

/** One type: lock while walking, so that claims beside each other take neighbours. */
const lockWalking = (schema: string): string => `
  picked as materialized (
    select x.id, row_number() over (order by l.priority desc, x.available_at, x.id) as n
    from live l cross join lateral (
      select t.id, t.available_at from ${schema}.task t where ${DUE_AT_LEVEL} order by t.available_at, t.id limit $4 for update skip locked
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
    select t.id, m.n from merged m join ${schema}.task t on t.id = m.id
    where t.status = 'pending' and t.available_at <= (select now from clock) order by m.n limit $4 for update of t skip locked
  )`

const leaseStatement = (schema: string, pick: string): string => `
  with recursive ${CLOCK}, ${levels(schema)}, ${pick}
  update ${schema}.task t set
    status = 'running', revision = t.revision + 1, attempts = t.attempts + 1, updated_at = clock.now, started_at = clock.now,
    lease_token = $5 || '.' || picked.n, lease_worker = $6, lease_claimed_at = clock.now, lease_expires_at = clock.now + $7::bigint,
    history = t.history || ',{"n":' || (t.revision + 1) || ',"at":' || clock.now || ',"move":"claim","to":"running","by":' || $8 || ',"op":' || $9 || '.' || picked.n || '"}'
  from picked, clock where t.id = picked.id
  returning clock.now, picked.n, ${[...CLAIMED_NUMBERS, ...CLAIMED_TEXTS].map((column) => `t.${column}`).join(', ')}`

export interface ClaimStatements {
  readonly one: string
  readonly many: string
  readonly due: string
  readonly next: string
}

export const claimStatements = (schema: string): ClaimStatements => ({
  one: leaseStatement(schema, lockWalking(schema)),
  many: leaseStatement(schema, mergeThenLock(schema)),
  due: `
    with ${CLOCK}
    (select ${COLUMNS} from ${schema}.task where status = 'running' and lease_expires_at <= (select now from clock) order by lease_expires_at limit $2)
    union all
    (select ${COLUMNS} from ${schema}.task where status = 'pending' and expires_at <= (select now from clock) order by expires_at limit $2)
    limit $2`,
  next: `
    with recursive ${CLOCK}, ${levels(schema)}
    select least(
      (select min(x.available_at) from live l cross join lateral (
        select t.available_at from ${schema}.task t where t.status = 'pending' and t.queue = $2 and t.type = l.type and t.expiring = l.expiring and t.priority = l.priority and (t.expires_at is null or t.expires_at > (select now from clock)) order by t.available_at limit 1
      ) x),
      (select lease_expires_at from ${schema}.task where status = 'running' order by lease_expires_at limit 1),
      (select expires_at from ${schema}.task where status = 'pending' and expires_at is not null order by expires_at limit 1)
    )`,
})

export const claimValues = ({ queue, types, limit, workerId, op, leaseTtl }: Want, now: Instant | null): Value[] => [
  now,
  queue,
  types,
  limit,
  op,
  workerId,
  leaseTtl,
  JSON.stringify(workerId),
  JSON.stringify(op).slice(0, -1),
]
