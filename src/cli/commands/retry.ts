/** `holdfast retry ID…`: runs failed and cancelled tasks again; a running one loses its lease. */

import type { GlobalOptions } from '../program/session.ts'
import { eachTask } from './shared/each-task.ts'

export const run = (ids: readonly string[], options: GlobalOptions): Promise<number> =>
  eachTask(ids, options, {
    move: (client, id) => client.retry(id),
    describe: ({ status, retryCount, maxRetries }) =>
      `${status} (retry_count: ${retryCount}, max_retries: ${maxRetries ?? 'unlimited'})`,
  })
