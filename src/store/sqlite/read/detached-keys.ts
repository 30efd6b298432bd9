/** Keys that outlived their task. */
import type { DatabaseSync } from 'node:sqlite'
import { type KeyRecord, keyIsLive } from '../../../core/idempotency.ts'
import type { Instant } from '../../../core/task.ts'
import { prepared } from '../file/connection.ts'
import { findKey } from './query.ts'

const LIST =
  'select key, task_id, hash, expires_at, exact from holdfast_key where orphan = 1 and key > ? order by key limit ?'
const PUT =
  'insert into holdfast_key (key, task_id, hash, expires_at, exact, orphan) ' +
  'values (?1, ?2, ?3, ?4, ?5, not exists (select 1 from holdfast_task where id = ?2)) ' +
  'on conflict (key) do update set task_id = excluded.task_id, hash = excluded.hash, expires_at = excluded.expires_at, exact = excluded.exact, orphan = excluded.orphan'

/** No key is empty, so all keys sort after the empty string. */
export const listDetachedKeys = (db: DatabaseSync, limit: number, after = ''): KeyRecord[] => {
  const rows = prepared(db, LIST).all(after, limit) as unknown as [string, string, string, number, number][]
  return rows.map(([key, taskId, hash, expiresAt, exact]) => ({ key, taskId, hash, expiresAt, exact: exact === 1 }))
}

export const putDetachedKey = (db: DatabaseSync, key: KeyRecord, now: Instant): boolean => {
  const held = findKey(db, key.key)
  if (held !== null && keyIsLive(held.key, held.task !== null, now)) return false
  prepared(db, PUT).run(key.key, key.taskId, key.hash, key.expiresAt, key.exact ? 1 : 0)
  return true
}
