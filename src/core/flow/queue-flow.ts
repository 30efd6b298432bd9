/** The document of a queue's flow control: its limits and its paused groups. */

import type { Instant } from '../task.ts'
import type { LimitOptions } from './limits.ts'
import { isInForce, type Pause, strongerPause } from './pause.ts'

/** Limits, and who set them when. */
export interface QueueLimits extends LimitOptions {
  /** When they were set, in ISO 8601. */
  readonly at: string
  /** Who set them. */
  readonly by: string
}

export interface QueueFlow {
  readonly limits?: QueueLimits
  readonly pausedGroups?: Readonly<Record<string, Pause>>
}

/** A damaged document binds nothing: a queue must not stop for it. */
export const readFlow = (value: string | null): QueueFlow => {
  if (value === null) return {}
  try {
    return JSON.parse(value) as QueueFlow
  } catch {
    return {}
  }
}

/** null: nothing is left to keep. */
export const writeFlow = ({ limits, pausedGroups }: QueueFlow): string | null => {
  const hasPauses = pausedGroups !== undefined && Object.keys(pausedGroups).length > 0
  if (limits === undefined && !hasPauses) return null
  return JSON.stringify({ ...(limits === undefined ? null : { limits }), ...(hasPauses ? { pausedGroups } : null) })
}

export const withLimits = ({ pausedGroups }: QueueFlow, limits: QueueLimits | null): QueueFlow => ({
  ...(limits === null ? null : { limits }),
  ...(pausedGroups === undefined ? null : { pausedGroups }),
})

/** Also drops the pauses that are over. */
export const withGroupPause = (flow: QueueFlow, group: string, wanted: Pause | null, now: Instant): QueueFlow => {
  const paused = new Map(Object.entries(flow.pausedGroups ?? {}).filter(([, pause]) => isInForce(pause, now)))
  if (wanted === null) paused.delete(group)
  else paused.set(group, strongerPause(paused.get(group) ?? null, wanted, now))
  return { ...flow, pausedGroups: Object.fromEntries(paused) }
}

/** What comes from another store joins what is here: limits that are set here stay, and of two pauses of a group the stronger one stands. */
export const mergedFlow = (here: QueueFlow, coming: QueueFlow, now: Instant): QueueFlow => {
  const limits = here.limits ?? coming.limits ?? null
  const arriving = Object.entries(coming.pausedGroups ?? {}).filter(([, pause]) => isInForce(pause, now))
  return arriving.reduce((flow, [group, pause]) => withGroupPause(flow, group, pause, now), withLimits(here, limits))
}
