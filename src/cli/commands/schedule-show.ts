/** `holdfast schedule show ID`: one fact per line. */
import { type Client, type Instant, isHoldfastError, type Schedule, skippedBecause, type Task } from '../../index.ts'
import { EXIT } from '../output/exit-codes.ts'
import { fitted, out, outJson, paint, printable } from '../output/render.ts'
import { nextText, plan, when } from '../output/schedule-text.ts'
import { type GlobalOptions, withClient } from '../program/session.ts'

export const run = ([id]: readonly string[], options: GlobalOptions): Promise<number> =>
  withClient(options, { create: false }, async (client) => {
    const schedule = await client.schedules.get(id!)
    if (options.json) outJson(schedule)
    else {
      const [now, runs] = await Promise.all([client.now(), inTheWay(client, schedule)])
      for (const [name, value] of facts(schedule, now, runs)) out(`${paint('dim', `${name}:`)} ${value}`)
    }
    return EXIT.ok
  })

const LONGEST_PAYLOAD = 2_000

/** The task that blocked the last skipped slot, if it still exists. */
const inTheWay = async (client: Client, { lastSkipped }: Schedule): Promise<Task | null> => {
  if (lastSkipped?.taskId === undefined) return null
  try {
    return await client.get(lastSkipped.taskId)
  } catch (error) {
    if (isHoldfastError(error, 'TASK_NOT_FOUND')) return null
    throw error
  }
}

const facts = (schedule: Schedule, now: Instant, runs: Task | null): (readonly [name: string, value: string])[] => {
  const { input, options, lastSkipped, lastTaskId } = schedule
  const json = (value: unknown): string => fitted(printable(JSON.stringify(value)), LONGEST_PAYLOAD)
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
      : [
          ['last_skipped', `${when(lastSkipped.slot, now)}, ${lastSkipped.reason}`] as const,
          ['why', printable(skippedBecause(lastSkipped, now, runs))] as const,
        ]),
    ['created_at', when(schedule.createdAt, now)],
    ['updated_at', when(schedule.updatedAt, now)],
    ['options', json(options)],
    ['input', input instanceof Uint8Array ? `${input.byteLength} bytes` : json(input)],
  ]
}
