/** Hung handlers among good ones, in a real `holdfast worker`. The full size: node bench/hung.ts. */
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type HungPlan, runHung } from './hung-campaign.ts'
import { cleanUp, folder } from './processes.ts'
import { report } from './seed.ts'

cleanUp()

const PLANS: readonly Pick<HungPlan, 'isolate' | 'good' | 'hung'>[] = [
  { isolate: 'none', good: 5_000, hung: 40 },
  { isolate: 'thread', good: 2_000, hung: 40 },
  { isolate: 'process', good: 2_000, hung: 20 },
]

test.each(PLANS)(
  'with isolate $isolate, $hung hung tasks end dead after their retries, and all $good good ones complete',
  async (plan) => {
    const { completed, dead, left, oddDead, ...facts } = await runHung({
      ...plan,
      url: `sqlite:${join(folder(), 'hung.db')}`,
      maxRetries: 1,
    })
    report(`hung, isolate ${plan.isolate}: ${JSON.stringify(facts)}`)
    expect({ completed, dead, left, oddDead }).toEqual({ completed: plan.good, dead: plan.hung, left: 0, oddDead: 0 })
    expect(facts.otherEnds, 'it ends only because it is stuck').toEqual([])
    expect(facts.stuckEnds > 0, 'isolated handlers are never stuck').toBe(plan.isolate === 'none')
  },
)
