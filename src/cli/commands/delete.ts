/** `holdfast delete ID…`: removes ended tasks and their idempotency keys. */

import type { GlobalOptions } from '../program/session.ts'
import { eachTask } from './shared/each-task.ts'

export const run = (ids: readonly string[], options: GlobalOptions): Promise<number> =>
  eachTask(ids, options, {
    async move(client, id) {
      const task = await client.get(id)
      await client.delete(id)
      return task
    },
    describe: ({ status }) => `deleted (was ${status})`,
  })
