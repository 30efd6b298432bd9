/** The counts of queues as the API shows them. */
import type { QueueStats } from '../../index.ts'

export const shownStats = (queues: readonly QueueStats[]): readonly Record<string, unknown>[] =>
  queues.map(({ pausedUntil, ...stats }) => ({
    ...stats,
    pausedUntil: pausedUntil === null ? null : new Date(pausedUntil).toISOString(),
  }))
