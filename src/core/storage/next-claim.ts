/** When a claim that found nothing is worth repeating, for stores that have all tasks at hand. */
import type { Instant, TaskRecord } from '../task.ts'

/** The first instant at which a waiting task becomes ready, a lease lapses or a task expires; null: none will. */
export const nextClaimAt = (
  tasks: Iterable<TaskRecord>,
  { queue, types }: { readonly queue: string; readonly types: readonly string[] | null },
  now: Instant,
): Instant | null => {
  let next = Number.POSITIVE_INFINITY
  for (const task of tasks) {
    const { status, availableAt, expiresAt, lease } = task
    if (status === 'running' && lease !== null) next = Math.min(next, lease.expiresAt)
    if (status !== 'pending') continue
    if (expiresAt !== null) next = Math.min(next, expiresAt)
    const isWanted = task.queue === queue && (types?.includes(task.type) ?? true)
    if (isWanted && availableAt > now) next = Math.min(next, availableAt)
  }
  return next === Number.POSITIVE_INFINITY ? null : next
}
