/** Converts the options of `schedule create` and `schedule update` to those of the API. */
import { connect, type ScheduleChanges, type ScheduledTaskOptions, type ScheduleOptions } from '../../index.ts'
import { given, integer, limit, retryPolicy, tags } from './input.ts'
import type { GlobalOptions } from './session.ts'

export interface ScheduleWords extends GlobalOptions {
  readonly type?: string
  readonly input?: string
  readonly cron?: string
  readonly timezone?: string
  readonly every?: string
  readonly mode?: string
  readonly overlap?: string
  readonly catchUp?: string
  readonly queue?: string
  readonly priority?: string
  readonly group?: string
  readonly ttl?: string
  readonly maxRetries?: string
  readonly maxAttempts?: string
  readonly retryPolicy?: string
  readonly maxReschedules?: string
  readonly timeout?: string
  readonly tag?: readonly string[]
}

/** Timing and policies. The API validates them and names what it refuses. */
export const planOptions = (words: ScheduleWords): ScheduleChanges => ({
  ...given('cron', words.cron),
  ...given('timezone', words.timezone),
  ...given('every', words.every),
  ...given('mode', words.mode),
  ...given('overlap', words.overlap),
  ...given('catchUp', words.catchUp),
})

export const taskOptions = (words: ScheduleWords): ScheduledTaskOptions => ({
  ...given('queue', words.queue),
  ...given('priority', words.priority, integer),
  ...given('group', words.group),
  ...given('ttl', words.ttl),
  ...given('maxRetries', words.maxRetries, limit),
  ...given('maxAttempts', words.maxAttempts, integer),
  ...given('retryPolicy', words.retryPolicy, retryPolicy),
  ...given('maxReschedules', words.maxReschedules, limit),
  ...given('timeout', words.timeout, (text) => (text.toLowerCase() === 'none' ? null : text)),
  ...given('tags', words.tag, tags),
})

/** Validates on a temporary store: a refused schedule must not leave a new, empty store behind. */
export const rehearse = async (options: ScheduleOptions): Promise<void> => {
  const client = await connect('memory:')
  try {
    await client.schedules.create(options)
  } finally {
    await client.close()
  }
}
