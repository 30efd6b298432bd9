/** `holdfast resume QUEUE…`: lets workers claim tasks from it again. */
import { EXIT } from '../output/exit-codes.ts'
import { out, outJson } from '../output/render.ts'
import { type GlobalOptions, withClient } from '../program/session.ts'

export const run = (
  queues: readonly string[],
  options: GlobalOptions & { readonly force?: boolean },
): Promise<number> =>
  withClient(options, { create: false }, async (client) => {
    for (const name of queues) await client.queue(name).resume({ force: options.force ?? false })
    if (options.json) outJson(queues.map((queue) => ({ queue, paused: false })))
    else for (const name of queues) out(`${name} resumed`)
    return EXIT.ok
  })
