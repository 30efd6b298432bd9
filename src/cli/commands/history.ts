/** `holdfast history ID`: one line a move. */
import { EXIT } from '../exit-codes.ts'
import { historyLines } from '../history-line.ts'
import { out, outJson } from '../render.ts'
import { type GlobalOptions, withClient } from '../session.ts'

export const run = ([id]: readonly string[], options: GlobalOptions & { readonly times?: boolean }): Promise<number> =>
  withClient(options, { create: false }, async (client) => {
    const task = await client.get(id!)
    if (options.json) outJson(task.toJSON()['history'])
    else for (const line of historyLines(task.history, options.times ?? false)) out(line)
    return EXIT.ok
  })
