/** `holdfast unarchive ID…`: restores the status that tasks had before archive. */

import type { GlobalOptions } from '../program/session.ts'
import { eachTask } from './shared/each-task.ts'

export const run = (ids: readonly string[], options: GlobalOptions): Promise<number> =>
  eachTask(ids, options, { move: (client, id) => client.unarchive(id), describe: ({ status }) => status })
