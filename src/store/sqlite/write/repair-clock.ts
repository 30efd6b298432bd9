/** Repairs what a process with a clock far ahead has written: dates in the future are set to now. */
import type { DatabaseSync } from 'node:sqlite'
import { MOST_AHEAD } from '../../../core/host/host-clock.ts'
import type { ClockRepaired } from '../../store.ts'
import { writeMeta } from '../schema.ts'

/** Exported for the examiner, which counts them. `:limit` is ten minutes after `:now`. */
export const LEASES_AHEAD = `status = 'running' and lease_expires_at > :limit + coalesce(lease_ttl, 0)`
export const TASKS_AHEAD = `(created_at > :limit or updated_at > :limit)`

/** A wait keeps its length, an expiry too where the task itself was made by that clock, and a lease lapses after its length. */
export const repairClock = (db: DatabaseSync, now: number): ClockRepaired => {
  const at = { now, limit: now + MOST_AHEAD }
  const leases = db
    .prepare(`update holdfast_task set lease_expires_at = :now + coalesce(lease_ttl, 0) where ${LEASES_AHEAD}`)
    .run(at).changes
  const tasks = db
    .prepare(
      `update holdfast_task set
        available_at = case when status = 'pending' and available_at > :now
          then max(:now, available_at - max(0, updated_at - :now)) else available_at end,
        expires_at = case when created_at > :limit then expires_at - (created_at - :now) else expires_at end,
        lease_claimed_at = min(lease_claimed_at, :now), started_at = min(started_at, :now),
        completed_at = min(completed_at, :now), expired_at = min(expired_at, :now),
        created_at = min(created_at, :now), updated_at = min(updated_at, :now)
       where ${TASKS_AHEAD}`,
    )
    .run(at).changes
  writeMeta(db, 'high_water', String(now))
  db.prepare(`delete from holdfast_meta where name = 'clock_ahead'`).run()
  return { leases: Number(leases), tasks: Number(tasks) }
}
