/** `holdfast schedule update ID`: what is not named stays as it is. */
import { HoldfastError } from '../../index.ts'
import { EXIT } from '../exit-codes.ts'
import { given, inputValue } from '../input.ts'
import { out, outJson } from '../render.ts'
import { planOptions, type ScheduleWords, taskOptions } from '../schedule-options.ts'
import { nextText } from '../schedule-words.ts'
import { withClient } from '../session.ts'

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
