/** kill -9 of eight worker processes on one PostgreSQL, again and again: nothing is lost, and nothing dies. */
import { expect, test } from 'vitest'
import { campaign, LEASE } from '../crash/kill-campaign.ts'
import { cleanUp } from '../crash/processes.ts'
import { percentile, report, seededChance } from '../crash/seed.ts'
import { volume } from '../volume.ts'
import { freshDatabase, onPostgres } from './setup.ts'

cleanUp()

const KILLS = volume(40, 100)

onPostgres('workers killed in the middle of a task', (url) => {
  test(`${KILLS} times lose nothing, and all tasks complete`, { timeout: 300_000 }, async () => {
    const { seed } = seededChance('kill, postgres')
    const address = await freshDatabase(url)
    const { submitted, killed, records, wrong, recoveries, late } = await campaign({
      address,
      kills: KILLS,
      processes: 7,
      backlog: 200,
      seed,
    })
    const [p50, p99, max] = [percentile(recoveries, 0.5), percentile(recoveries, 0.99), Math.max(...recoveries)]
    report(
      `kill, postgres: ${killed.length} kills, ${recoveries.length} runs cut short, ${submitted.length} tasks, ${wrong.length} violations`,
    )
    report(
      `kill, postgres: pending again, lease ${LEASE} ms: p50 ${p50} ms, p99 ${p99} ms, max ${max} ms; the machine's share is at most ${late} ms`,
    )
    expect(wrong.slice(0, 5)).toEqual([])
    expect(killed.length).toBeGreaterThanOrEqual(KILLS)
    expect(records.filter((record) => record?.status !== 'completed')).toEqual([])
    expect(recoveries.filter((took) => Number.isNaN(took))).toEqual([])
    expect(max).toBeLessThanOrEqual(LEASE + 2_000 + late)
  })

  test('by a reclaimer that does not wait for the end of a lease is noticed', async () => {
    const address = await freshDatabase(url)
    const { wrong } = await campaign({
      address,
      kills: 2,
      processes: 2,
      backlog: 30,
      seed: 3,
      plant: 'hasty-reclaim',
    })
    expect(wrong.some((sentence) => sentence.includes('lost a lease'))).toBe(true)
  })
})
