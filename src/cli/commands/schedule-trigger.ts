/** `holdfast schedule trigger ID`: one task now, whatever the plan says. */
import { EXIT } from '../exit-codes.ts'
import { out, outJson } from '../render.ts'
import { type GlobalOptions, withClient } from '../session.ts'

export const run = ([id]: readonly string[], options: GlobalOptions): Promise<number> =>
  withClient(options, { create: false }, async (client) => {
    const task = await client.schedules.trigger(id!)
    if (options.json) outJson(task)
    else out(task.id)
    return EXIT.ok
  })
