/** `holdfast schedule trigger ID`: creates one task now, whatever the plan. */
import { EXIT } from '../output/exit-codes.ts'
import { out, outJson } from '../output/render.ts'
import { type GlobalOptions, withClient } from '../program/session.ts'

export const run = ([id]: readonly string[], options: GlobalOptions): Promise<number> =>
  withClient(options, { create: false }, async (client) => {
    const task = await client.schedules.trigger(id!)
    if (options.json) outJson(task)
    else out(task.id)
    return EXIT.ok
  })
