/** How far the clock of a host is believed, where a store's time is the host's own. */
import type { Instant } from '../task.ts'

/** Steps back by less are carried over, so that leases go on. A time further ahead of the host's was shown by a clock that was wrong. */
export const MOST_AHEAD = 600_000

/** Before the first release: a clock that shows it has not been set since the machine was switched on. */
const RELEASED: Instant = Date.UTC(2026, 0)

/** Whether `shown`, the latest time that is known to have been used, counts before the time that the host shows now. */
export const isCredible = (shown: Instant, host: Instant): boolean => shown - host <= MOST_AHEAD || host < RELEASED
