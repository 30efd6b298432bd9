/** Processes that wake each other through one object, at the distance of a real S3. Side by side, each with a server of its own: nearly all of it is waiting. */
import { expect, type TestContext, test } from 'vitest'
import { connect, silentLogger } from '../../../src/index.ts'
import { type SimulatedS3, startSimulatedS3 } from '../../servers/simulated-s3/start.ts'
import { flow, idle, quantile } from './scenes.ts'

const begin = async (own: Pick<TestContext, 'onTestFinished'>): Promise<SimulatedS3> => {
  const s3 = await startSimulatedS3({ latency: 30 })
  own.onTestFinished(() => s3.remove())
  return s3
}

const open = async (place: ReturnType<SimulatedS3['fresh']>) =>
  connect(place.url, { create: true, logger: silentLogger, s3: { credentials: place.credentials } })

test.concurrent('a task starts in another process without a list of its own', { timeout: 120_000 }, async (own) => {
  const s3 = await begin(own)
  const medians: number[] = []
  // The machine itself may make a process wait; a worker that polls would wait every time.
  while (medians.length < 3 && !medians.some((ms) => ms < 1_000)) {
    const { rows, waits, runs } = await flow(s3, { workers: 1, types: 1, tasks: 40, rate: 10, concurrency: 10 })
    expect(runs).toBe(40)
    const lists = rows.filter(({ kind, folder }) => kind === 'LIST' && folder === 'ready')
    expect(lists.reduce((sum, { count }) => sum + count, 0)).toBeLessThanOrEqual(3)
    medians.push(quantile(waits, 0.5))
  }
  // 300 ms on a machine that has nothing else to do; polling took more than a second.
  expect(Math.min(...medians)).toBeLessThan(1_000)
})

test.concurrent('where a key may be written once a second, all tasks run all the same', {
  timeout: 90_000,
}, async (own) => {
  const s3 = await begin(own)
  const place = s3.fresh()
  const [producer, consumer] = [await open(place), await open(place)]
  let runs = 0
  const worker = consumer.worker({ concurrency: 20 }).handle('a', async () => void runs++)
  worker.start()
  await s3.change({ writesPerSecondAndKey: 1 })
  for (let n = 0; n < 10; n++) await producer.submit('a', n)
  await expect.poll(() => runs, { timeout: 60_000 }).toBe(10)
  await s3.change({ writesPerSecondAndKey: null })
  await worker.stop()
  await Promise.all([producer.close(), consumer.close()])
})

test.concurrent('an idle worker of five queues asks for next to nothing', { timeout: 120_000 }, async (own) => {
  const s3 = await begin(own)
  const { counts } = await idle(s3, 5, 25_000, 30)
  expect(counts.GET).toBeLessThanOrEqual(16)
  expect(counts.PUT + counts.LIST).toBeLessThanOrEqual(5)
})
