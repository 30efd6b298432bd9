/** `holdfast history ID`: prints one line per move, step and signal. */
import { isMove, type Task } from '../../index.ts'
import { EXIT } from '../output/exit-codes.ts'
import { out, outJson } from '../output/render.ts'
import { timelineLines } from '../output/timeline-line.ts'
import { type GlobalOptions, withClient } from '../program/session.ts'

export const run = ([id]: readonly string[], options: GlobalOptions & { readonly times?: boolean }): Promise<number> =>
  withClient(options, { create: false }, async (client) => {
    const task = await client.get(id!)
    if (options.json) outJson(shown(task))
    else for (const line of timelineLines(task.timeline(), options.times ?? false)) out(line)
    return EXIT.ok
  })

/** Moves as the API has them; steps and signals have `kind` in place of `move`. */
const shown = (task: Task): unknown[] => {
  const moves = [...(task.toJSON()['history'] as unknown[])]
  const iso = (at: number): string => new Date(at).toISOString()
  return task.timeline().map((entry) => {
    if (isMove(entry)) return moves.shift()
    const { at, until, ...moment } = entry
    return { ...moment, at: iso(at), ...(until === undefined ? null : { until: until === null ? null : iso(until) }) }
  })
}
