/** Processes that wake each other through one object, at the distance of a real S3. */
import { afterAll, expect, test } from 'vitest'
import { connect, silentLogger } from '../../../src/index.ts'
import { startSimulatedS3 } from '../../servers/simulated-s3/start.ts'
import { flow, idle, quantile } from './scenes.ts'

const s3 = await startSimulatedS3({ latency: 30 })
afterAll(() => s3.remove())

const open = async (place: ReturnType<typeof s3.fresh>) =>
  connect(place.url, { create: true, logger: silentLogger, s3: { credentials: place.credentials } })

test('a task starts in another process without a list of its own', { timeout: 60_000 }, async () => {
  const { rows, waits, runs } = await flow(s3, { workers: 1, types: 1, tasks: 40, rate: 10, concurrency: 10 })
  expect(runs).toBe(40)
  const lists = rows.filter(({ kind, folder }) => kind === 'LIST' && folder === 'ready')
  expect(lists.reduce((sum, { count }) => sum + count, 0)).toBeLessThanOrEqual(3)
  // 300 ms on a machine that has nothing else to do; polling took more than a second.
  expect(quantile(waits, 0.5)).toBeLessThan(1_000)
})

test('where a key may be written once a second, all tasks run all the same', { timeout: 90_000 }, async () => {
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

test('an idle worker of five queues asks for next to nothing', { timeout: 120_000 }, async () => {
  const { counts } = await idle(s3, 5, 25_000, 30)
  expect(counts.GET).toBeLessThanOrEqual(16)
  expect(counts.PUT + counts.LIST).toBeLessThanOrEqual(5)
})
