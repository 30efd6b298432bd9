/** Fair shares by the clock. The full size, with 100,000 tasks in front: node bench/fairness.ts. */

import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type FairShares, fairShares } from '../../bench/fair-shares.ts'
import { connect, silentLogger } from '../../src/index.ts'
import { folder } from '../crash/processes.ts'
import { report } from '../crash/seed.ts'

const plan: FairShares = { long: 1_000, others: 49, each: 6, concurrency: 10, takes: 30 }

const measured = async (fair: boolean): Promise<number> => {
  const client = await connect(`sqlite:${join(folder(), 'fair.db')}`, { logger: silentLogger })
  const { latest, perfect } = await fairShares(client, 'work', { ...plan, fair })
  await client.close()
  report(
    `${fair ? 'in turns' : 'in order'}: the latest group after ${(latest / perfect).toFixed(2)} times perfect turns`,
  )
  return latest / perfect
}

test('groups behind a long line are done within 1.5 times the time that perfect turns would take', async () => {
  expect(await measured(true)).toBeLessThan(1.5)
})

test('without turns the same groups would be noticed to wait', async () => {
  expect(await measured(false)).toBeGreaterThan(2.5)
})
