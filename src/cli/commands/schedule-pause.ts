/** `holdfast schedule pause ID`. */
import { EXIT } from '../output/exit-codes.ts'
import { out, outJson } from '../output/render.ts'
import { type GlobalOptions, withClient } from '../program/session.ts'

export const run = ([id]: readonly string[], options: GlobalOptions): Promise<number> =>
  withClient(options, { create: false }, async (client) => {
    const schedule = await client.schedules.pause(id!)
    if (options.json) outJson(schedule)
    else out(`${schedule.id} paused`)
    return EXIT.ok
  })
