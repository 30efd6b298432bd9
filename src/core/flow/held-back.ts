/** Says which limit of its queue holds a task back. */

import type { Instant } from '../task.ts'
import type { LimitOptions } from './limits.ts'

export interface HeldBackFacts {
  readonly queue: string
  readonly group: string | null
  readonly limits: LimitOptions
  /** Running tasks of the queue. */
  readonly running: number
  /** Who holds the running tasks of the group, one entry for each task. */
  readonly groupHolders: readonly string[]
  /** When the queue and the group have their next permit; null: now, or there is no rate. */
  readonly permitAt: Instant | null
  readonly groupPermitAt: Instant | null
}

const MOST_NAMED = 5

/** null: none of them. `when` writes an instant. */
export const heldBackBy = (facts: HeldBackFacts, when: (at: Instant) => string): string | null => {
  const { queue, group, limits, running, groupHolders, permitAt, groupPermitAt } = facts
  const { concurrency, perGroup } = limits
  if (concurrency !== undefined && running >= concurrency)
    return `queue '${queue}' has ${running} of ${concurrency} running`
  if (group !== null && perGroup !== undefined && groupHolders.length >= perGroup)
    return `group '${group}' has ${groupHolders.length} of ${perGroup} running (${named(groupHolders)})`
  if (permitAt !== null) return `queue '${queue}' has no permits until ${when(permitAt)}`
  if (groupPermitAt !== null) return `group '${group}' has no permits until ${when(groupPermitAt)}`
  return null
}

const named = (holders: readonly string[]): string => {
  const all = [...new Set(holders)]
  const more = all.length > MOST_NAMED ? `, and ${all.length - MOST_NAMED} more` : ''
  return `${all.slice(0, MOST_NAMED).join(', ')}${more}`
}
