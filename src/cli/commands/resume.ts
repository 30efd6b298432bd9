/** `holdfast resume QUEUE…`: workers take tasks from it again. */
import { EXIT } from '../exit-codes.ts'
import { out, outJson } from '../render.ts'
import { type GlobalOptions, withClient } from '../session.ts'

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
