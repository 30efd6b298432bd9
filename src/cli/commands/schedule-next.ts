/** `holdfast schedule next ID`: the next slots, so that an expression can be checked. */
import { EXIT } from '../output/exit-codes.ts'
import { out, outJson } from '../output/render.ts'
import { when } from '../output/schedule-text.ts'
import { integer } from '../program/input.ts'
import { type GlobalOptions, withClient } from '../program/session.ts'

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
