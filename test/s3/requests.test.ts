/** The same numbers as in test/kv/requests.test.ts, for real requests, which are what is charged. */
import { expect, onTestFinished, test } from 'vitest'
import { connect, silentLogger } from '../../src/index.ts'
import { startStub } from './stub-server.ts'

const begin = async () => {
  const stub = await startStub()
  onTestFinished(() => stub.close())
  const counts = { PUT: 0, GET: 0, LIST: 0, DELETE: 0 }
  const client = await connect(`s3://bucket/jobs?endpoint=${stub.endpoint}`, {
    create: true,
    logger: silentLogger,
    s3: { credentials: { accessKeyId: 'a', secretAccessKey: 'b' }, onRequest: (kind) => counts[kind]++ },
  })
  onTestFinished(() => client.close())
  let left = 1
  let all = Promise.withResolvers<void>()
  const worker = client.worker({ concurrency: 20 }).handle('a', async () => {
    if (--left === 0) all.resolve()
  })
  worker.start()
  // What is done only once does not count for a task.
  await client.submit('a', null)
  await all.promise
  /** The cost of this many tasks, until the worker has stopped. */
  const costOf = async (tasks: number, submit: () => Promise<unknown>) => {
    const before = { ...counts }
    left = tasks
    all = Promise.withResolvers<void>()
    await submit()
    await all.promise
    await worker.stop()
    expect((await client.count({ status: 'completed' })).count).toBe(tasks + 1)
    return (kind: keyof typeof counts): number => counts[kind] - before[kind]
  }
  return { client, costOf }
}

/** The worker registers twice and leaves once, and the wake object is written now and then. */
const BESIDE = 5
/** At most every 400 ms, however long it takes. */
const WAKES = 40
/** Of the wake object. */
const READS = 300

test('a task that is submitted alone costs 4 PUT, no more than 1 GET and 1 DELETE, and its share of the lists', async () => {
  const { client, costOf } = await begin()
  const TASKS = 40
  const cost = await costOf(TASKS, async () => {
    for (let n = 0; n < TASKS; n++) await client.submit('a', null)
  })
  // A segment of the index for what ended within 5 s.
  expect(cost('PUT')).toBeLessThanOrEqual(4 * TASKS + TASKS / 10 + BESIDE + WAKES)
  expect(cost('DELETE')).toBeLessThanOrEqual(TASKS + BESIDE)
  // Beside them, the count at the end reads those that are not in the index yet.
  expect(cost('GET')).toBeLessThanOrEqual(2 * TASKS + BESIDE + READS)
})

test('a task of a batch costs 3 PUT and a tenth, and its share of the deletes and lists', async () => {
  const { client, costOf } = await begin()
  const TASKS = 200
  const items = Array.from({ length: TASKS }, () => ({ type: 'a', input: null }))
  const cost = await costOf(TASKS, () => client.submitMany(items))
  expect(cost('PUT')).toBeLessThanOrEqual(3 * TASKS + TASKS / 20 + TASKS / 20 + BESIDE + WAKES)
  expect(cost('DELETE')).toBeLessThanOrEqual(TASKS / 20 + BESIDE)
  expect(cost('LIST')).toBeLessThanOrEqual(TASKS / 4)
  expect(cost('GET')).toBeLessThanOrEqual(2 * TASKS + BESIDE + READS)
})
