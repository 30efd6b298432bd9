/** Renewals, guarded by token. The keeper's thread runs them on its own connection. */
import type { Instant } from '../../../core/task.ts'
import type { Renewal, Renewed } from '../../store.ts'
import { CLOCK } from '../claim/claimer.ts'
import type { Executor, PgRow, Value } from '../connection.ts'

/**
 * Written so that no index matches: the planner assumes that few tasks are running and would scan them all, including dead
 * entries, although the ids lead to the rows directly.
 */
const RUNNING = `t.status || '' = 'running'`

/** Skips rows that another transaction has locked: a batch that never waits is never part of a deadlock. */
const renewPassing = (schema: string): string => `
  with ${CLOCK}, held as materialized (
    select x.place, r.ttl, r.not_after, r.progress
    from unnest($2::uuid[], $3::text[], $4::bigint[], $5::bigint[], $6::text[]) as r(id, token, ttl, not_after, progress) cross join lateral (
      select t.ctid as place from ${schema}.task t where t.id = r.id and t.lease_token = r.token and ${RUNNING} for update skip locked
    ) x
  )
  update ${schema}.task t set lease_expires_at = least(clock.now + held.ttl, held.not_after), progress = coalesce(held.progress, t.progress)
  from held, clock where t.ctid = held.place
  returning t.id, t.lease_token, t.cancel_requested_at`

export const renewLeases = async (
  executor: Pick<Executor, 'query'>,
  schema: string,
  all: readonly Renewal[],
  now: Instant | null,
): Promise<Renewed[]> => {
  const renewals = lastOfEach(all)
  const held = await renewFree(executor, schema, renewals, now)
  if (held.size < renewals.length) {
    const passed = await stillHeld(executor, schema, renewals, held)
    // Most locks are over by now. None is waited for: the renewals of other leases would wait with it.
    for (const [name, renewed] of await renewFree(executor, schema, passed, now)) held.set(name, renewed)
    for (const renewal of passed) if (!held.has(nameOf(renewal))) held.set(nameOf(renewal), 'locked')
  }
  return all.map((renewal) => held.get(nameOf(renewal)) ?? 'lost')
}

const renewFree = async (
  executor: Pick<Executor, 'query'>,
  schema: string,
  renewals: readonly Renewal[],
  now: Instant | null,
): Promise<Map<string, Renewed>> =>
  renewals.length === 0 ? new Map() : heldOf(await executor.query(renewPassing(schema), [now, ...columnsOf(renewals)]))

/** The tasks that this claim leased and that have not moved since. Running tasks are few and have an index. */
export const leasedBy = async (
  executor: Pick<Executor, 'query'>,
  schema: string,
  workerId: string,
  op: string,
): Promise<readonly Pick<Renewal, 'id' | 'token'>[]> => {
  const rows = await executor.query(
    `select t.id, t.lease_token from ${schema}.task t where t.status = 'running' and t.lease_worker = $1 and starts_with(t.lease_token, $2)`,
    [workerId, `${op}.`],
  )
  return rows.map(([id, token]) => ({ id: id as string, token: token as string }))
}

/** The skipped rows that still have their token. */
const stillHeld = async (
  executor: Pick<Executor, 'query'>,
  schema: string,
  renewals: readonly Renewal[],
  held: ReadonlyMap<string, Renewed>,
): Promise<readonly Renewal[]> => {
  const passed = renewals.filter((renewal) => !held.has(nameOf(renewal)))
  const rows = await executor.query(
    `select t.id, t.lease_token from ${schema}.task t where t.id = any($1::uuid[]) and ${RUNNING}`,
    [passed.map(({ id }) => id)],
  )
  const tokens = new Map(rows.map(([id, token]) => [id as string, token as string | null]))
  return passed.filter(({ id, token }) => tokens.get(id) === token)
}

const nameOf = ({ id, token }: Pick<Renewal, 'id' | 'token'>): string => `${id} ${token}`

const heldOf = (rows: readonly PgRow[]): Map<string, Renewed> =>
  new Map(
    rows.map(([id, token, cancelRequestedAt]) => [`${id} ${token}`, cancelRequestedAt === null ? 'held' : 'cancel']),
  )

const columnsOf = (renewals: readonly Renewal[]): Value[] => [
  renewals.map(({ id }) => id),
  renewals.map(({ token }) => token),
  renewals.map(({ leaseTtl }) => leaseTtl),
  renewals.map(({ notAfter }) => notAfter ?? null),
  renewals.map(({ progress }) => progress ?? null),
]

/** One statement can write a row only once, so the last of several renewals of a lease is used, with the last progress. */
const lastOfEach = (renewals: readonly Renewal[]): readonly Renewal[] => {
  const last = new Map<string, Renewal>()
  for (const renewal of renewals) last.set(nameOf(renewal), { ...last.get(nameOf(renewal)), ...renewal })
  return [...last.values()]
}
