/** Fair shares by the clock. The full size, with 100,000 tasks in front: node bench/fairness.ts. */
import { expect, test } from 'vitest'
import { fairShares } from '../../bench/fair-shares.ts'
import { report } from '../crash/seed.ts'
import { begin, onPostgres } from './setup.ts'

onPostgres('a fair queue on PostgreSQL', (url) => {
  // Other files load the same server meanwhile. In the order of submission the groups would take 4.3 times as long as in perfect turns.
  test('groups behind a long line are done about when perfect turns would end', { retry: 2 }, async () => {
    const client = await begin(url).connect()
    const plan = { long: 1_000, others: 49, each: 6, concurrency: 10, takes: 30 }
    const { latest, perfect } = await fairShares(client, 'work', plan)
    report(`the latest group after ${(latest / perfect).toFixed(2)} times perfect turns`)
    expect(latest / perfect).toBeLessThan(2)
  })
})
