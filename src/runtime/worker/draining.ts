/** The options of `worker.drain`. */
import { type Duration, parseDuration } from '../../core/values/durations.ts'
import { checkOptionNames } from '../../core/values/option-names.ts'

/** When `drain` stops. */
export interface DrainOptions {
  /**
   * After this time nothing more is claimed. Running handlers get the worker's `stopTimeout`, then their signal aborts with `shutdown`. Default: no limit.
   */
  readonly for?: Duration
  /**
   * First fires due schedules, takes back lapsed leases, ends expired tasks and applies retention, and runs the tasks that result. Default false:
   * schedules do not fire.
   */
  readonly schedules?: boolean
}

/** What `drain` did, and what it left. */
export interface Drained {
  /** It stopped because the time was over: there may be more to do. */
  readonly timeIsOver: boolean
}

interface DrainSettings {
  readonly limit: number | null
  readonly schedules: boolean
}

const OPTIONS: ReadonlySet<string> = new Set<keyof DrainOptions>(['for', 'schedules'])

export const drainSettings = (options: DrainOptions): DrainSettings => {
  checkOptionNames(options, OPTIONS, 'drain')
  return {
    limit: options.for === undefined ? null : parseDuration(options.for, 'for'),
    schedules: options.schedules ?? false,
  }
}
