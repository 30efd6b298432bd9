/** `holdfast schedule create ID`: refuses everything that can be refused before a store is made. */
import type { ScheduleOptions } from '../../index.ts'
import { EXIT } from '../exit-codes.ts'
import { inputValue, required } from '../input.ts'
import { out, outJson } from '../render.ts'
import { planOptions, rehearse, type ScheduleWords, taskOptions } from '../schedule-options.ts'
import { nextText } from '../schedule-words.ts'
import { withClient } from '../session.ts'

export const run = async (
  [id]: readonly string[],
  words: ScheduleWords & { readonly paused?: boolean },
): Promise<number> => {
  const options: ScheduleOptions = {
    ...planOptions(words),
    id: id!,
    type: required(words.type, '-t, --type'),
    input: await inputValue(required(words.input, '-i, --input')),
    options: taskOptions(words),
    paused: words.paused ?? false,
  }
  await rehearse(options)
  return withClient(words, { create: true }, async (client) => {
    const schedule = await client.schedules.create(options)
    if (words.json) outJson(schedule)
    else out(`${schedule.id} created, next_at: ${nextText(schedule, await client.now())}`)
    return EXIT.ok
  })
}
