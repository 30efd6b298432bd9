/** `holdfast schedule next ID`: the slots to come, so that an expression can be read before it is trusted. */
import { EXIT } from '../exit-codes.ts'
import { integer } from '../input.ts'
import { out, outJson } from '../render.ts'
import { when } from '../schedule-words.ts'
import { type GlobalOptions, withClient } from '../session.ts'

export const run = ([id]: readonly string[], options: GlobalOptions & { readonly count?: string }): Promise<number> =>
  withClient(options, { create: false }, async (client) => {
    const slots = await client.schedules.next(id!, integer(options.count ?? '5'))
    if (options.json) outJson(slots.map((slot) => new Date(slot).toISOString()))
    else {
      const now = await client.now()
      for (const slot of slots) out(when(slot, now))
    }
    return EXIT.ok
  })
