/** kill -9 of workers in the middle of a task, again and again: nothing is lost, and what they held is soon free. */
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { connect, silentLogger } from '../../src/index.ts'
import { volume } from '../volume.ts'
import { campaign, LEASE } from './kill-campaign.ts'
import { measureLag } from './lag.ts'
import { cleanUp, folder, start, until } from './processes.ts'
import { percentile, report, seededChance } from './seed.ts'
import { readWitness, unfinished } from './witness.ts'

cleanUp()

const KILLS = volume(40, 100)

const address = (): string => join(folder(), 'kill.db')

test(`${KILLS} workers killed in the middle of a task lose nothing, and their tasks are free again within the lease and a second`, async () => {
  const { seed } = seededChance('kill')
  const { submitted, killed, records, wrong, recoveries, late } = await campaign({
    address: address(),
    kills: KILLS,
    processes: 5,
    backlog: 200,
    seed,
  })
  const [p50, p99, max] = [percentile(recoveries, 0.5), percentile(recoveries, 0.99), Math.max(...recoveries)]
  report(
    `kill: ${killed.length} kills, ${recoveries.length} runs cut short, ${submitted.length} tasks, ${wrong.length} violations`,
  )
  report(
    `kill: pending again after the kill, lease ${LEASE} ms: p50 ${p50} ms, p99 ${p99} ms, max ${max} ms; the machine's share is at most ${late} ms`,
  )
  expect(wrong.slice(0, 5)).toEqual([])
  expect(killed.length).toBeGreaterThanOrEqual(KILLS)
  expect(records.filter((record) => record?.status !== 'completed')).toEqual([])
  expect(recoveries.filter((took) => Number.isNaN(took))).toEqual([])
  expect(max).toBeLessThanOrEqual(LEASE + 1_000 + late)
})

test('workers that have no slot free still free what a killed one held', async () => {
  const place = folder()
  const file = join(place, 'taken.db')
  const client = await connect(`sqlite:${file}`, { logger: silentLogger })
  const submit = async (maxRetries: number): Promise<string> => (await client.submit('work', null, { maxRetries })).id
  const victim = start('worker', {
    file,
    folder: place,
    seed: 1,
    concurrency: 2,
    takes: [60_000, 60_000],
    leaseTtl: `${LEASE}ms`,
  })
  await victim.heard('ready')
  const [pending, dead] = [await submit(1), await submit(0)]
  await until('both are under way', () => unfinished(readWitness(place, victim.pid)).length === 2)

  const busy = Promise.withResolvers<void>()
  const worker = client.worker({ concurrency: 1, leaseTtl: `${LEASE}ms` }).handle('long', () => busy.promise)
  const { id: long } = await client.submit('long', null)
  worker.start()
  await until('the only slot is taken', async () => (await client.get(long)).status === 'running')
  const lag = measureLag(client)
  await victim.kill()
  const killedAt = Date.now()
  await until('the task is pending again', async () => (await client.get(pending)).status === 'pending', 20_000)
  await until('the one without retries is dead', async () => (await client.get(dead)).status === 'failed', 20_000)
  const late = await lag.end()
  const lostAt = (await client.history(pending)).find(({ move }) => move === 'lose-lease')!.at
  report(`kill: with no slot free, pending again after ${lostAt - killedAt} ms`)
  // One look more than with a free slot: a worker looks every two seconds when nothing wakes it.
  expect(lostAt - killedAt).toBeLessThanOrEqual(LEASE + 2_000 + 1_000 + late)
  busy.resolve()
  await client.close()
})

test('a store that completes a task before it has run is noticed', async () => {
  const { wrong } = await campaign({
    address: address(),
    kills: 3,
    processes: 2,
    backlog: 30,
    seed: 2,
    plant: 'complete-on-claim',
  })
  expect(wrong.some((sentence) => sentence.includes('no witness saw'))).toBe(true)
})

test('a reclaimer that does not wait for the end of a lease is noticed', async () => {
  const { wrong } = await campaign({
    address: address(),
    kills: 3,
    processes: 2,
    backlog: 30,
    seed: 3,
    plant: 'hasty-reclaim',
  })
  expect(wrong.some((sentence) => sentence.includes('lost a lease'))).toBe(true)
})
