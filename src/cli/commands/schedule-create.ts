/** `holdfast schedule create ID`: validates everything before a store is created. */
import type { ScheduleOptions } from '../../index.ts'
import { EXIT } from '../output/exit-codes.ts'
import { out, outJson } from '../output/render.ts'
import { nextText } from '../output/schedule-text.ts'
import { inputValue, required } from '../program/input.ts'
import { planOptions, rehearse, type ScheduleWords, taskOptions } from '../program/schedule-options.ts'
import { withClient } from '../program/session.ts'

export const run = async (
  [id]: readonly string[],
  words: ScheduleWords & { readonly paused?: boolean },
): Promise<number> => {
  // The library checks that exactly one of cron and every is given.
  const options = {
    ...planOptions(words),
    id: id!,
    type: required(words.type, '-t, --type'),
    input: await inputValue(required(words.input, '-i, --input')),
    options: taskOptions(words),
    paused: words.paused ?? false,
  } as ScheduleOptions<string>
  await rehearse(options)
  return withClient(words, { create: true }, async (client) => {
    const schedule = await client.schedules.create(options)
    if (words.json) outJson(schedule)
    else out(`${schedule.id} created, next_at: ${nextText(schedule, await client.now())}`)
    return EXIT.ok
  })
}
