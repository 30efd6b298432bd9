/** Keys that outlived their task. */
import type { KeyRecord } from '../../../core/idempotency.ts'
import type { DetachedKeys } from '../../store.ts'
import { CLOCK } from '../claim/claimer.ts'
import type { Connections } from '../connection.ts'

const ENDED = (schema: string): string =>
  `k.expires_at <= (select now from clock) and (k.exact or not exists (select 1 from ${schema}.task t where t.id = k.task_id))`

export const postgresDetachedKeys = (connections: Connections, schema: string): DetachedKeys => ({
  async list({ limit, after = '' }) {
    const rows = await connections.query(
      `select key, task_id, hash, expires_at, exact from ${schema}.key where orphan and key > $1 order by key limit $2`,
      [after, limit],
    )
    return rows.map(([key, taskId, hash, expiresAt, exact]) => ({ key, taskId, hash, expiresAt, exact }) as KeyRecord)
  },
  /** One statement can write a row only once, so the first of two equal keys is used. Locks in the order of the keys, like insert. */
  async put(keys, now) {
    const first = new Map<string, KeyRecord>()
    for (const key of keys) if (!first.has(key.key)) first.set(key.key, key)
    const distinct = [...first.values()].sort((a, b) => (a.key < b.key ? -1 : 1))
    const rows = await connections.query(
      `with ${CLOCK}
      insert into ${schema}.key as k (key, task_id, hash, expires_at, exact, orphan)
      select r.key, r.task_id, r.hash, r.expires_at, r.exact, not exists (select 1 from ${schema}.task t where t.id = r.task_id)
      from unnest($2::text[], $3::uuid[], $4::text[], $5::bigint[], $6::boolean[]) as r(key, task_id, hash, expires_at, exact)
      on conflict (key) do update set task_id = excluded.task_id, hash = excluded.hash, expires_at = excluded.expires_at,
        exact = excluded.exact, orphan = excluded.orphan
      where ${ENDED(schema)}
      returning key`,
      [
        now,
        distinct.map(({ key }) => key),
        distinct.map(({ taskId }) => taskId),
        distinct.map(({ hash }) => hash),
        distinct.map(({ expiresAt }) => expiresAt),
        distinct.map(({ exact }) => exact),
      ],
    )
    const put = new Set(rows.map(([key]) => key as string))
    return keys.map(({ key }) => put.delete(key))
  },
})
