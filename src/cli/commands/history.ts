/** `holdfast history ID`: prints one line per move. */
import { EXIT } from '../output/exit-codes.ts'
import { historyLines } from '../output/history-line.ts'
import { out, outJson } from '../output/render.ts'
import { type GlobalOptions, withClient } from '../program/session.ts'

export const run = ([id]: readonly string[], options: GlobalOptions & { readonly times?: boolean }): Promise<number> =>
  withClient(options, { create: false }, async (client) => {
    const task = await client.get(id!)
    if (options.json) outJson(task.toJSON()['history'])
    else for (const line of historyLines(task.history, options.times ?? false)) out(line)
    return EXIT.ok
  })
