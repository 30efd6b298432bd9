/** `holdfast schedule delete ID`. */
import { EXIT } from '../output/exit-codes.ts'
import { out, outJson } from '../output/render.ts'
import { type GlobalOptions, withClient } from '../program/session.ts'

export const run = ([id]: readonly string[], options: GlobalOptions): Promise<number> =>
  withClient(options, { create: false }, async (client) => {
    await client.schedules.delete(id!)
    if (options.json) outJson({ id, deleted: true })
    else out(`${id} deleted`)
    return EXIT.ok
  })
