/** `holdfast retry ID…`: failed and cancelled tasks run again; a running one loses its lease. */
import { eachTask } from '../each-task.ts'
import type { GlobalOptions } from '../session.ts'

export const run = (ids: readonly string[], options: GlobalOptions): Promise<number> =>
  eachTask(ids, options, {
    move: (client, id) => client.retry(id),
    told: ({ status, retryCount, maxRetries }) =>
      `${status} (retry_count: ${retryCount}, max_retries: ${maxRetries ?? 'unlimited'})`,
  })
