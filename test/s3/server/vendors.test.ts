/** Servers that differ from AWS in ways that matter, as the simulated S3 plays them. */
import { afterAll, expect, onTestFinished, test } from 'vitest'
import { type Client, connect, silentLogger } from '../../../src/index.ts'
import { startSimulatedS3 } from '../../servers/simulated-s3/start.ts'

const s3 = await startSimulatedS3({ latency: 2 })
afterAll(() => s3.remove())

const open = async (place = s3.fresh()): Promise<Client> => {
  const { url, credentials } = place
  const client = await connect(url, { create: true, logger: silentLogger, s3: { credentials } })
  onTestFinished(() => client.close())
  return client
}

test('a server whose lists are not in order, as those of directory buckets, is refused by name', async () => {
  await s3.change({ listsUnordered: true })
  onTestFinished(() => s3.change({ listsUnordered: false }))
  await expect(open()).rejects.toMatchObject({
    code: 'INVALID_OPTION',
    message: expect.stringMatching(/order.*directory buckets/),
    details: { field: 'url' },
  })
})

test('a server that takes one write per second and key, as Cloudflare R2, is accepted, and runs tasks', async () => {
  await s3.change({ writesPerSecondAndKey: 1 })
  onTestFinished(() => s3.change({ writesPerSecondAndKey: null }))
  const client = await open()
  const worker = client.worker({ concurrency: 40 }).handle('a', async (input) => input)
  const items = Array.from({ length: 40 }, (_, n) => ({ type: 'a', input: n, idempotencyKey: `k${n}` }))
  const submitted = await client.submitMany(items)
  worker.start()
  for (const one of submitted) {
    if (!one.ok) throw one.error
    await client.wait(one.task, { timeout: '40s' })
  }
  await client.queue('default').pause()
  await client.queue('default').resume()
  await worker.stop()
  const { count } = await client.count({ status: 'completed' })
  expect(count).toBe(40)
  // Each ran once: a write that was turned away is not a run that was lost.
  expect((await client.list({ limit: 100 })).tasks.every(({ attempts }) => attempts === 1)).toBe(true)
})

test('such a server also runs tasks under limits, which hold, and charges none of them a retry', {
  timeout: 120_000,
}, async () => {
  const place = s3.fresh()
  const clients = [await open(place), await open(place)]
  await s3.change({ writesPerSecondAndKey: 1 })
  onTestFinished(() => s3.change({ writesPerSecondAndKey: null }))
  await clients[0]!.queue('default').limit({ concurrency: 4, perGroup: 2 })
  const items = Array.from({ length: 12 }, (_, n) => ({ type: 'a', input: n, group: `g${n % 3}`, maxRetries: 0 }))
  expect((await clients[0]!.submitMany(items)).every(({ ok }) => ok)).toBe(true)
  const running: string[] = []
  const most = { all: 0, ofGroup: 0 }
  let runs = 0
  const workers = clients.map((client) =>
    client.worker({ concurrency: 20 }).handle('a', async (_, { task }) => {
      running.push(task.group!)
      most.all = Math.max(most.all, running.length)
      most.ofGroup = Math.max(most.ofGroup, running.filter((group) => group === task.group).length)
      await new Promise((done) => setTimeout(done, 20))
      running.splice(running.indexOf(task.group!), 1)
      runs++
    }),
  )
  for (const worker of workers) worker.start()
  await expect.poll(() => runs, { timeout: 90_000 }).toBe(12)
  await Promise.all(workers.map((worker) => worker.stop()))
  expect(most.all).toBeLessThanOrEqual(4)
  expect(most.ofGroup).toBeLessThanOrEqual(2)
  const { tasks } = await clients[0]!.list({ limit: 100 })
  expect(tasks.map(({ status, retryCount }) => `${status} ${retryCount}`)).toEqual(items.map(() => 'completed 0'))
})

test('a server without conditional writes is refused at once, not asked again for seconds', async () => {
  await s3.change({ conditions: 'unsupported' })
  onTestFinished(() => s3.change({ conditions: 'supported' }))
  const begun = performance.now()
  await expect(open()).rejects.toMatchObject({
    code: 'INVALID_OPTION',
    message: expect.stringMatching(/501.*does not implement/),
  })
  expect(performance.now() - begun).toBeLessThan(3_000)
})
