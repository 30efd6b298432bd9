/** `holdfast schedule list`: one row per schedule. */
import type { Instant, Schedule } from '../../index.ts'
import { EXIT } from '../output/exit-codes.ts'
import { type Column, err, fitted, out, outJson, table } from '../output/render.ts'
import { nextText, plan } from '../output/schedule-text.ts'
import { type GlobalOptions, withClient } from '../program/session.ts'

export const run = (_: readonly string[], options: GlobalOptions): Promise<number> =>
  withClient(options, { create: false }, async (client) => {
    const [schedules, now] = await Promise.all([client.schedules.list(), client.now()])
    if (options.json) outJson(schedules)
    else if (schedules.length === 0) err('no schedules')
    else out(table(columns(now), schedules).trimEnd())
    return EXIT.ok
  })

const columns = (now: Instant): Column<Schedule>[] => [
  { title: 'ID', cell: ({ id }) => fitted(id, 40) },
  { title: 'TYPE', cell: ({ type }) => fitted(type, 40) },
  { title: 'PLAN', cell: plan },
  { title: 'OVERLAP', cell: ({ overlap }) => overlap },
  { title: 'CATCH-UP', cell: ({ catchUp }) => catchUp },
  { title: 'NEXT', cell: (schedule) => nextText(schedule, now), style: ({ paused }) => (paused ? 'yellow' : null) },
]
