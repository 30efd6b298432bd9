/** `holdfast archive ID…`: hides ended tasks from default lists. */

import type { GlobalOptions } from '../program/session.ts'
import { eachTask } from './shared/each-task.ts'

export const run = (ids: readonly string[], options: GlobalOptions): Promise<number> =>
  eachTask(ids, options, {
    move: (client, id) => client.archive(id),
    describe: ({ status, archivedFrom }) => `${status} (was ${archivedFrom})`,
  })
