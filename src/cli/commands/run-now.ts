/** `holdfast run-now ID…`: makes scheduled and retrying tasks due at once. */
import type { GlobalOptions } from '../program/session.ts'
import { eachTask } from './shared/each-task.ts'

export const run = (ids: readonly string[], options: GlobalOptions): Promise<number> =>
  eachTask(ids, options, { move: (client, id) => client.runNow(id), describe: ({ status }) => `${status} (due now)` })
