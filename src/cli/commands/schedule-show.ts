/** `holdfast schedule show ID`: one fact a line. */
import type { Instant, Schedule } from '../../index.ts'
import { EXIT } from '../exit-codes.ts'
import { out, outJson, paint, printable, shorten } from '../render.ts'
import { nextText, plan, when } from '../schedule-words.ts'
import { type GlobalOptions, withClient } from '../session.ts'

export const run = ([id]: readonly string[], options: GlobalOptions): Promise<number> =>
  withClient(options, { create: false }, async (client) => {
    const schedule = await client.schedules.get(id!)
    if (options.json) outJson(schedule)
    else {
      for (const [name, value] of facts(schedule, await client.now())) out(`${paint('dim', `${name}:`)} ${value}`)
    }
    return EXIT.ok
  })

const LONGEST_PAYLOAD = 2_000

const facts = (schedule: Schedule, now: Instant): (readonly [name: string, value: string])[] => {
  const { input, options, lastSkipped, lastTaskId } = schedule
  const json = (value: unknown): string => shorten(printable(JSON.stringify(value)), LONGEST_PAYLOAD)
  return [
    ['id', schedule.id],
    ['incarnation', schedule.incarnation],
    ['type', schedule.type],
    ['plan', plan(schedule)],
    ['overlap', schedule.overlap],
    ['catch_up', schedule.catchUp],
    ['next_at', nextText(schedule, now)],
    ['settled_until', when(schedule.cursor, now)],
    ['last_task_id', lastTaskId ?? 'none'],
    ...(lastSkipped === null
      ? []
      : [['last_skipped', `${when(lastSkipped.slot, now)}, ${lastSkipped.reason}`] as const]),
    ['created_at', when(schedule.createdAt, now)],
    ['updated_at', when(schedule.updatedAt, now)],
    ['options', json(options)],
    ['input', input instanceof Uint8Array ? `${input.byteLength} bytes` : json(input)],
  ]
}
