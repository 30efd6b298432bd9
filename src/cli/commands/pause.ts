/** `holdfast pause QUEUE…`: workers take nothing more from it; what runs goes on. */
import { EXIT } from '../exit-codes.ts'
import { out, outJson } from '../render.ts'
import { type GlobalOptions, withClient } from '../session.ts'

export const run = (
  queues: readonly string[],
  options: GlobalOptions & { readonly reason?: string },
): Promise<number> =>
  withClient(options, { create: false }, async (client) => {
    for (const name of queues)
      await client.queue(name).pause(options.reason === undefined ? {} : { reason: options.reason })
    if (options.json) outJson(queues.map((queue) => ({ queue, paused: true })))
    else for (const name of queues) out(`${name} paused`)
    return EXIT.ok
  })
