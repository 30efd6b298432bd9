/** `holdfast unarchive ID…`: archived tasks are what they were before. */
import { eachTask } from '../each-task.ts'
import type { GlobalOptions } from '../session.ts'

export const run = (ids: readonly string[], options: GlobalOptions): Promise<number> =>
  eachTask(ids, options, { move: (client, id) => client.unarchive(id), told: ({ status }) => status })
