/** `holdfast delete ID…`: ended tasks and their idempotency keys are gone. */
import { eachTask } from '../each-task.ts'
import type { GlobalOptions } from '../session.ts'

export const run = (ids: readonly string[], options: GlobalOptions): Promise<number> =>
  eachTask(ids, options, {
    async move(client, id) {
      const task = await client.get(id)
      await client.delete(id)
      return task
    },
    told: ({ status }) => `deleted (was ${status})`,
  })
