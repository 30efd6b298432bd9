/** Coalesced triggers of four processes while workers run: none is lost, and a key never has two tasks that wait. */
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { coalesceCampaign } from './coalesce-campaign.ts'
import { cleanUp, folder } from './processes.ts'
import { report, seededChance } from './seed.ts'

cleanUp()

const campaign = { processes: 4, triggers: 4_000, keys: 100 }

test('the last trigger of each key is followed by a run that began after it', async () => {
  const { seed } = seededChance('coalesce')
  const address = join(folder(), 'coalesce.db')
  const { violations, ...counts } = await coalesceCampaign({ ...campaign, address, seed, plant: 'lost-replies' })
  report(`coalesce: ${JSON.stringify(counts)}`)
  expect(violations).toEqual([])
  expect(counts.triggered).toBe(campaign.triggers)
})

test('a store that does not compare what a key stands for is noticed', async () => {
  const { seed } = seededChance('coalesce planted')
  const address = join(folder(), 'planted.db')
  const { violations } = await coalesceCampaign({ ...campaign, triggers: 1_000, address, seed, plant: 'forget-keys' })
  expect(violations.length).toBeGreaterThan(0)
})
