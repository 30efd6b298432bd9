/** `holdfast schedule update ID`: omitted options stay as they are. */
import { HoldfastError } from '../../index.ts'
import { EXIT } from '../output/exit-codes.ts'
import { out, outJson } from '../output/render.ts'
import { nextText } from '../output/schedule-text.ts'
import { given, inputValue } from '../program/input.ts'
import { planOptions, type ScheduleWords, taskOptions } from '../program/schedule-options.ts'
import { withClient } from '../program/session.ts'

export const run = async ([id]: readonly string[], words: ScheduleWords): Promise<number> => {
  const options = taskOptions(words)
  const changes = {
    ...planOptions(words),
    ...given('type', words.type),
    ...(words.input === undefined ? null : { input: await inputValue(words.input) }),
  }
  const isSomething = Object.keys(changes).length + Object.keys(options).length > 0
  if (!isSomething) throw new HoldfastError('INVALID_OPTION', 'nothing to change: name at least one option')
  return withClient(words, { create: false }, async (client) => {
    const before = await client.schedules.get(id!)
    const schedule = await client.schedules.update(id!, {
      ...changes,
      ...(Object.keys(options).length === 0 ? null : { options: { ...before.options, ...options } }),
    })
    if (words.json) outJson(schedule)
    else out(`${schedule.id} updated, next_at: ${nextText(schedule, await client.now())}`)
    return EXIT.ok
  })
}
