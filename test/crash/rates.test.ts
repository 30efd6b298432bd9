/** A rate that four processes share. The full size, 60 a minute for three minutes on every store: node test/crash/rate-table.ts. */
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { cleanUp, folder } from './processes.ts'
import { rateCampaign } from './rate-campaign.ts'
import { report, seededChance } from './seed.ts'

cleanUp()

const campaign = { processes: 4, count: 10, window: 1_000, burst: 3, lasts: 6_000 }

test('four processes together never exceed a rate in any window', async () => {
  const { seed } = seededChance('rates')
  const { violations, ...counts } = await rateCampaign({ ...campaign, address: join(folder(), 'rates.db'), seed })
  report(`rates: ${JSON.stringify(counts)}`)
  expect(violations).toEqual([])
  // The rate was used, so more would have been seen.
  expect(counts.starts).toBeGreaterThan(20)
})

test('a store whose documents are written without a comparison is noticed', async () => {
  const { seed } = seededChance('rates planted')
  const address = join(folder(), 'planted.db')
  const { violations } = await rateCampaign({ ...campaign, address, seed, plant: 'unchecked-documents' })
  expect(violations.length).toBeGreaterThan(0)
})
