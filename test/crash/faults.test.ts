/** The short tier of `npm run campaign`: every fault of SQLite at once, for some seconds, and the checker that users have. */
import { expect, test } from 'vitest'
import { faultCampaign } from './fault-campaign.ts'
import { FAULT_PLACES } from './fault-places.ts'
import type { Plant } from './planted.ts'
import { cleanUp } from './processes.ts'
import { report, seededChance } from './seed.ts'

cleanUp()

const campaign = async (plant: Plant, minutes: number, kills = 0, lateWrites = 0) => {
  const { seed } = seededChance('faults')
  const place = await FAULT_PLACES.sqlite()
  try {
    return await faultCampaign({ place, minutes, mostMinutes: 2, kills, lateWrites, seed, plant })
  } finally {
    await place.remove()
  }
}

test('six workers under every fault at once lose, repeat and mix up nothing', async () => {
  const { verification, violations, faults, lateWrites } = await campaign('none', 0.1, 5, 2)
  const { tasks, verdicts, found } = verification
  const facts = verdicts.reduce((sum, { checked }) => sum + checked, 0)
  report(`faults: ${JSON.stringify({ tasks, facts, lateWrites, ...faults })}`)
  expect([...violations, ...found]).toEqual([])
  // A campaign in which nothing happened would find nothing, too.
  expect(faults['kill -9']).toBeGreaterThanOrEqual(5)
  expect(lateWrites).toBeGreaterThanOrEqual(2)
  expect(facts).toBeGreaterThan(1_000)
})

test('a store that lets a run be claimed twice is noticed', async () => {
  const { verification } = await campaign('claim-twice', 0.02)
  expect(verification.found.length).toBeGreaterThan(0)
})
