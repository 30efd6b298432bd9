/** `holdfast resume QUEUE…`: lets workers claim tasks from it again. */
import { EXIT } from '../output/exit-codes.ts'
import { out, outJson } from '../output/render.ts'
import { given } from '../program/input.ts'
import { type GlobalOptions, withClient } from '../program/session.ts'
import { pausedName } from './pause.ts'

export const run = (
  queues: readonly string[],
  options: GlobalOptions & { readonly force?: boolean; readonly group?: string },
): Promise<number> =>
  withClient(options, { create: false }, async (client) => {
    for (const name of queues)
      await client.queue(name).resume({ force: options.force ?? false, ...given('group', options.group) })
    if (options.json) outJson(queues.map((queue) => ({ queue, ...given('group', options.group), paused: false })))
    else for (const name of queues) out(`${pausedName(name, options.group)} resumed`)
    return EXIT.ok
  })
