/** `holdfast cancel ID…`: pending tasks are cancelled, running ones asked to stop. */
import { eachTask } from '../each-task.ts'
import { printable } from '../render.ts'
import type { GlobalOptions } from '../session.ts'

export const run = (ids: readonly string[], options: GlobalOptions & { readonly reason?: string }): Promise<number> =>
  eachTask(ids, options, {
    move: (client, id) => client.cancel(id, options.reason === undefined ? {} : { reason: options.reason }),
    told: ({ status, lease }) =>
      status === 'running' ? `asked to stop (running on ${printable(lease!.workerId)})` : status,
  })
