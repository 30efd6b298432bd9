/** `holdfast schedule resume ID`. */
import { EXIT } from '../output/exit-codes.ts'
import { out, outJson } from '../output/render.ts'
import { nextText } from '../output/schedule-text.ts'
import { type GlobalOptions, withClient } from '../program/session.ts'

export const run = ([id]: readonly string[], options: GlobalOptions): Promise<number> =>
  withClient(options, { create: false }, async (client) => {
    const schedule = await client.schedules.resume(id!)
    if (options.json) outJson(schedule)
    else out(`${schedule.id} resumed, next_at: ${nextText(schedule, await client.now())}`)
    return EXIT.ok
  })
