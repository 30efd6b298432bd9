/** A server that is stopped as by a crash and started again, under load: nothing acknowledged is lost, and nobody gives up. */
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, expect, type TestContext, test } from 'vitest'
import { connect, silentLogger } from '../../src/index.ts'
import { openAt } from '../crash/address.ts'
import { type Plant, planted } from '../crash/planted.ts'
import { type Child, cleanUp, folder, start, until } from '../crash/processes.ts'
import { readRecords, violations } from '../crash/runs.ts'
import { percentile, report } from '../crash/seed.ts'
import { readWitnesses } from '../crash/witness.ts'
import { startPostgres } from '../servers/postgres.ts'
import { volume } from '../volume.ts'
import { onPostgres } from './setup.ts'

cleanUp(afterAll)

const PROCESSES = 4
const LEASE = 5_000
const WINDOW = 1_000
const RESTARTS = volume(4, 10)

interface Campaign {
  readonly own: TestContext
  readonly restarts: number
  /** In the process that submits. */
  readonly plant?: Plant
}

/** Runs that ended in the last second, by the witnesses: the store may be away. */
const rateOf = (place: string): number => {
  const since = Number(process.hrtime.bigint()) / 1e6 - WINDOW
  return readWitnesses(place).filter(({ what, mono }) => what === 'end' && mono > since).length
}

const campaign = async ({ own, restarts, plant = 'none' }: Campaign) => {
  // With fsync, as a real one has.
  const server = await startPostgres()
  own.onTestFinished(() => server.remove())
  const place = folder()
  const client = await connect(planted(await openAt(server.url), plant), { logger: silentLogger })
  own.onTestFinished(() => client.close())
  const begin = (seed: number): Child =>
    start('worker', {
      file: server.url,
      folder: place,
      seed,
      concurrency: 4,
      takes: [40, 120],
      leaseTtl: `${LEASE}ms`,
    })
  const workers = Array.from({ length: PROCESSES }, (_, i) => begin(i))
  await Promise.all(workers.map((worker) => worker.heard('ready')))

  const acknowledged: string[] = []
  let refused = 0
  let isOver = false
  const produce = async (): Promise<void> => {
    while (!isOver) {
      await pause(20)
      // While the server is away too: what it never heard of must not be acknowledged.
      const { count } = await client.count({ status: 'pending' }).catch(() => ({ count: 0 }))
      if (count >= 400) continue
      const results = await client
        .submitMany(Array.from({ length: 100 }, () => ({ type: 'work', input: null })))
        .catch(() => [])
      for (const result of results) {
        if (result.ok) acknowledged.push(result.task.id)
        else refused++
      }
    }
  }
  const producing = produce()

  await until('the workers are at work', () => rateOf(place) > 50)
  const recoveries: number[] = []
  for (let restart = 0; restart < restarts; restart++) {
    await pause(WINDOW)
    const before = rateOf(place)
    await server.stop('immediate')
    await pause(200)
    await server.start()
    const begun = performance.now()
    await pause(WINDOW)
    await until('the rate is what it was', () => rateOf(place) >= before * 0.8, 30_000, 50)
    recoveries.push(performance.now() - begun - WINDOW)
  }
  isOver = true
  await producing
  const alive = workers.filter((worker) => worker.isAlive).length
  await until(
    'every task has ended',
    async () => {
      const counts = await Promise.all(['pending', 'running'].map((status) => client.count({ status })))
      return counts.every(({ count }) => count === 0)
    },
    60_000,
  )
  for (const worker of workers) worker.signal('SIGTERM')
  const ends = await Promise.all(workers.map((worker) => worker.end()))
  const records = await readRecords(server.url, acknowledged)
  const wrong = violations({ submitted: acknowledged, records, witness: [], leaseTtl: LEASE }).filter(
    (sentence) => !sentence.includes('no witness'),
  )
  const dead = (await client.count({ status: 'dead' })).count
  return { acknowledged: acknowledged.length, refused, wrong, dead, alive, ends, recoveries }
}

onPostgres('a server stopped as by a crash', () => {
  test.concurrent(`${RESTARTS} times under load loses nothing, kills nothing, and is at full rate again within ten seconds`, {
    timeout: 300_000,
  }, async (own) => {
    const { acknowledged, refused, wrong, dead, alive, ends, recoveries } = await campaign({ own, restarts: RESTARTS })
    const [p50, max] = [percentile(recoveries, 0.5), Math.max(...recoveries)]
    report(
      `restart: ${recoveries.length} restarts, ${acknowledged} tasks acknowledged, ${refused} refused, ${wrong.length} violations, ${dead} dead`,
    )
    report(`restart: full rate again p50 ${p50.toFixed(0)} ms, max ${max.toFixed(0)} ms after the server was ready`)
    expect(wrong.slice(0, 5)).toEqual([])
    expect(dead).toBe(0)
    expect(alive).toBe(PROCESSES)
    expect(ends).toEqual(ends.map(() => ({ code: 0, signal: null })))
    expect(max).toBeLessThan(10_000)
  })

  test.concurrent('shows a store that acknowledges before it writes', { timeout: 120_000 }, async (own) => {
    const { wrong } = await campaign({ own, restarts: 2, plant: 'early-ack' })
    expect(wrong.some((sentence) => sentence.includes('is lost'))).toBe(true)
  })
})
