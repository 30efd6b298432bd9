/** `holdfast archive ID…`: ended tasks are hidden from default lists. */
import { eachTask } from '../each-task.ts'
import type { GlobalOptions } from '../session.ts'

export const run = (ids: readonly string[], options: GlobalOptions): Promise<number> =>
  eachTask(ids, options, {
    move: (client, id) => client.archive(id),
    told: ({ status, archivedFrom }) => `${status} (was ${archivedFrom})`,
  })
