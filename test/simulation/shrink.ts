/** Takes away what a violation does not need: faults, tasks, workers, schedules, time. Each concern has its own random numbers, so the rest stays. */
import type { Program } from './bundle.ts'
import type { Fault, Reduction } from './settings.ts'
import { type Order, type Outcome, simulate } from './simulation.ts'

const MOST_LINES = 40
const LONGEST_LINE = 200

export interface Shrunk {
  readonly reduction: Reduction
  readonly outcome: Outcome
  /** The last things that happened to the task that it is about. */
  readonly story: readonly string[]
}

/** The violation stays one of the same invariant. */
export const shrink = async (program: Program, order: Order, found: Outcome): Promise<Shrunk> => {
  const { invariant } = found.violations[0]!
  let best: { reduction: Reduction; outcome: Outcome } = { reduction: order.reduction ?? {}, outcome: found }
  const tried = async (reduction: Reduction): Promise<boolean> => {
    const outcome = await simulate(program, { ...order, keepLines: true, reduction })
    const isSame = outcome.violations.some((one) => one.invariant === invariant)
    if (isSame) best = { reduction, outcome }
    return isSame
  }
  for (const [fault, rate] of Object.entries(found.settings.faults) as [Fault, number][])
    if (rate > 0) await tried({ ...best.reduction, without: [...(best.reduction.without ?? []), fault] })
  const { schedules, hasLimits, hasRetention, skew } = found.settings
  if (schedules > 0) await tried({ ...best.reduction, schedules: 0 })
  if (hasLimits) await tried({ ...best.reduction, hasLimits: false })
  if (hasRetention) await tried({ ...best.reduction, hasRetention: false })
  if (skew > 0) await tried({ ...best.reduction, skew: 0 })
  for (const name of ['workers', 'tasks', 'faultyFor'] as const) {
    for (let half = Math.floor(best.outcome.settings[name] / 2); half >= 1; half = Math.floor(half / 2))
      if (!(await tried({ ...best.reduction, [name]: half }))) break
  }
  return { ...best, story: storyOf(best.outcome) }
}

const storyOf = ({ lines, violations }: Outcome): readonly string[] => {
  const { task } = violations[0]!
  const about = (lines ?? []).filter((line) => task === undefined || line.includes(task) || line.includes('nemesis'))
  return about.slice(-MOST_LINES).map((line) => (line.length > LONGEST_LINE ? `${line.slice(0, LONGEST_LINE)}…` : line))
}
