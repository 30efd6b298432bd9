/** `holdfast expire ID…`: marks pending tasks as expired. */
import type { GlobalOptions } from '../program/session.ts'
import { eachTask } from './shared/each-task.ts'

export const run = (ids: readonly string[], options: GlobalOptions): Promise<number> =>
  eachTask(ids, options, { move: (client, id) => client.markExpired(id), describe: ({ status }) => status })
