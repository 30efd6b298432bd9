/** Turns a cell and the plan into one run of one system. Depth is separate, because its runs share a filled store. */
import { runDrain } from './cells/drain.ts'
import { runIdle } from './cells/idle.ts'
import { runInsert } from './cells/insert.ts'
import { runSteady } from './cells/steady.ts'
import type { Cell } from './cells.ts'
import type { Figures } from './figures.ts'
import type { Ground } from './ground.ts'
import type { Plan } from './plan.ts'

export const runCell = (ground: Ground, { kind, shape, processes, rate }: Cell, plan: Plan): Promise<Figures> => {
  const { tasks } = plan
  if (kind === 'steady') return runSteady(ground, { shape, rate, seconds: plan.steadySeconds(rate) })
  if (kind === 'idle') return runIdle(ground, { shape, ...plan.idle })
  if (kind === 'insert-batch') return runInsert(ground, { shape, tasks })
  return runDrain(ground, { shape, processes, tasks })
}

/** The depth comes from the plan. */
export const described = (cell: Cell, { depth: { first, few, many } }: Plan): Cell => {
  const [ran, little, much] = [first, few, many].map((count) => count.toLocaleString('en'))
  const what = `${cell.what}, the first ${ran} with ${little} and with ${much} waiting`
  return cell.kind === 'depth' ? { ...cell, what } : cell
}
