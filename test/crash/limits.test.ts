/** Limits under kill -9, SIGSTOP past the lease and lost replies: never more at once than they allow. */
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { limitCampaign } from './limit-campaign.ts'
import { cleanUp, folder } from './processes.ts'
import { report, seededChance } from './seed.ts'

cleanUp()

const small = { backlog: 400, groups: 40, kills: 6, stops: 3, processes: 4 }

test('limits hold while workers are killed, stopped past their lease, and lose replies', async () => {
  const { seed } = seededChance('limits')
  const address = join(folder(), 'limits.db')
  const { violations, most, runs, ...counts } = await limitCampaign({ ...small, address, seed, plant: 'lost-replies' })
  report(`limits: ${JSON.stringify({ ...counts, runs, most, violations: violations.length })}`)
  expect(violations).toEqual([])
  expect(counts.completed).toBe(counts.submitted)
  // The limits were used, so a larger number would have been seen.
  expect(most).toMatchObject({ one: 1, two: 2, whole: 7 })
})

test.each(['one-too-many', 'counts-before-claiming'] as const)('a store with the bug %s is noticed', async (plant) => {
  const { seed } = seededChance('limits planted')
  const address = join(folder(), 'planted.db')
  const { violations } = await limitCampaign({ ...small, kills: 0, stops: 0, address, seed, plant })
  expect(violations.length).toBeGreaterThan(0)
})
