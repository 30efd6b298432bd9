/** What a task costs, and what an idle worker costs, in requests. */
import { expect, test } from 'vitest'
import { want } from '../../src/testing/conformance/build.ts'
import { begin } from './setup.ts'

const TASKS = 20

test('a task that is submitted here and run there costs 4 PUT, 1 GET, 1 DELETE and its share of the lists', async () => {
  const { clock, open } = begin()
  const [producer, consumer] = [await open(), await open()]
  const worker = consumer.client.worker({ concurrency: TASKS }).handle('a', async () => null)
  worker.start()
  await clock.advance(1)
  await producer.client.submit('a', 0)
  await clock.advance(3_000)
  for (const { kv } of [producer, consumer]) kv.take()
  for (let i = 0; i < TASKS; i++) await producer.client.submit('a', i)
  expect(producer.kv.take()).toEqual({ PUT: 2 * TASKS })
  await clock.advance(2_000)
  expect((await producer.client.count({ status: 'completed' })).count).toBe(TASKS + 1)
  const { PUT, GET, DELETE, LIST } = consumer.kv.take()
  expect(PUT).toBe(2 * TASKS)
  expect(GET).toBe(TASKS)
  expect(DELETE).toBeLessThanOrEqual(TASKS)
  expect(LIST).toBeLessThanOrEqual(3)
  await worker.stop()
})

test('whoever submits and works in one process does not even read the task', async () => {
  const { clock, open } = begin()
  const { client, kv } = await open()
  const worker = client.worker({ concurrency: TASKS }).handle('a', async () => null)
  worker.start()
  await client.submit('a', 0)
  await clock.advance(3_000)
  kv.take()
  await client.submitMany(Array.from({ length: TASKS }, (_, i) => ({ type: 'a', input: i })))
  await clock.advance(100)
  const { PUT, GET = 0, DELETE } = kv.take()
  // Alike as they are, one hint does for all of them.
  expect(PUT).toBe(3 * TASKS + 1)
  expect(GET).toBe(0)
  expect(DELETE).toBe(1)
  await worker.stop()
})

test('a batch costs 3 PUT and a twentieth a task, 1 GET where another runs it, and a delete for 20', async () => {
  const { clock, open } = begin()
  const [producer, consumer] = [await open(), await open()]
  const many = 10 * TASKS
  const worker = consumer.client.worker({ concurrency: many }).handle('a', async () => null)
  worker.start()
  await producer.client.submit('a', 0)
  await clock.advance(3_000)
  for (const { kv } of [producer, consumer]) kv.take()
  await producer.client.submitMany(Array.from({ length: many }, (_, i) => ({ type: 'a', input: i })))
  expect(producer.kv.take()).toEqual({ PUT: many + many / 20 })
  await clock.advance(2_500)
  const { PUT, GET, DELETE } = consumer.kv.take()
  expect((await producer.client.count({ status: 'completed' })).count).toBe(many + 1)
  expect(PUT).toBeLessThanOrEqual(2 * many + 2)
  expect(GET).toBeLessThanOrEqual(many + 2)
  expect(DELETE).toBeLessThanOrEqual(many / 20)
  await worker.stop()
})

test('a batch under keys costs 4 PUT and a twentieth a task, of which two are the claim and the end', async () => {
  const { open } = begin()
  const { client, kv } = await open()
  await client.submit('a', 0, { idempotencyKey: 'key 3' })
  kv.take()
  const results = await client.submitMany(
    Array.from({ length: TASKS }, (_, i) => ({ type: 'a', input: 0, idempotencyKey: `key ${i}` })),
  )
  expect(results.filter((result) => result.ok && result.task.deduplicated)).toHaveLength(1)
  // For what stands there already: the try to make its key.
  expect(kv.take()['PUT']).toBe(2 * (TASKS - 1) + 1 + 1)
})

test('an idle look is one list a queue, and everything else at most 6 requests a minute [U16]', async () => {
  const { clock, open } = begin()
  const { client, kv } = await open()
  const worker = client.worker({ queues: ['default', 'mail', 'slow'] }).handle('a', async () => null)
  worker.start()
  await clock.advance(10_000)
  kv.take()
  const minutes = 10
  for (let second = 0; second < minutes * 60; second++) await clock.advance(1_000)
  const looks = kv.log.filter((line) => line.startsWith('LIST ready/'))
  const others = kv.log.filter((line) => !line.startsWith('LIST ready/'))
  expect(looks.length).toBeLessThanOrEqual(minutes * 60 * 3 * 0.5 + 3)
  expect(others.length).toBeLessThanOrEqual(6 * minutes)
  await worker.stop()
})

test('a heartbeat is one PUT', async () => {
  const { clock, open } = begin()
  const { client, kv } = await open()
  const ends = Promise.withResolvers<null>()
  const worker = client.worker().handle('a', () => ends.promise)
  worker.start()
  await client.submit('a', 0)
  await clock.advance(1_000)
  kv.take()
  for (let second = 0; second < 60; second++) await clock.advance(1_000)
  const beats = kv.log.filter((line) => line.startsWith('PUT tasks/')).length
  expect(beats).toBeGreaterThanOrEqual(5)
  expect(beats).toBeLessThanOrEqual(6)
  expect(kv.log.filter((line) => line.startsWith('GET tasks/'))).toEqual([])
  ends.resolve(null)
  await clock.advance(1)
  await worker.stop()
})

test('a pause by another process is seen within 5 s, though nobody asks for it', async () => {
  const { clock, open } = begin()
  const [operator, other] = [await open(), await open()]
  let runs = 0
  const worker = other.client.worker().handle('a', async () => void runs++)
  worker.start()
  await operator.client.submit('a', 0)
  await clock.advance(30_000)
  expect(runs).toBe(1)
  await operator.client.queue('default').pause()
  for (let second = 0; second < 5; second++) await clock.advance(1_000)
  await operator.client.submit('a', 1)
  for (let second = 0; second < 60; second++) await clock.advance(1_000)
  expect(runs).toBe(1)
  await operator.client.queue('default').resume()
  for (let second = 0; second < 6; second++) await clock.advance(1_000)
  expect(runs).toBe(2)
  await worker.stop()
})

test('[I04] a durable sleep costs its own write and hint, and nothing at the claims of others', async () => {
  const { clock, open } = begin()
  const { client, kv } = await open()
  const worker = client.worker().handle('a', async (_, ctx) => (ctx.fence === 1 ? ctx.reschedule('60s') : null))
  worker.start()
  await clock.advance(3_000)
  kv.take()
  const { id } = await client.submit('a', 0)
  await clock.advance(100)
  // Hint and task; claim; hint and task again.
  expect(kv.log.filter((line) => /^PUT (tasks|ready)/.test(line))).toHaveLength(5)
  kv.take()
  for (let second = 0; second < 59; second++) await clock.advance(1_000)
  expect(kv.log.filter((line) => line.includes(id))).toEqual([])
  await clock.advance(3_000)
  expect((await client.get(id))?.status).toBe('completed')
  await worker.stop()
})

test('behind a long line, many small looks share one list, and no task is leased twice', async () => {
  const { clock, open } = begin()
  const { client, store, kv } = await open()
  await client.submitMany(Array.from({ length: 1_500 }, () => ({ type: 'email', input: null })))
  await clock.advance(1_000)
  kv.take()
  const leased = new Set<string>()
  for (let look = 0; look < 50; look++) {
    const found = await store.claim(want({ limit: 8, now: null, leaseTtl: 30_000 }))
    expect(found.leased).toHaveLength(8)
    for (const { id } of found.leased) leased.add(id)
  }
  expect(leased.size).toBe(400)
  expect(kv.log.filter((line) => line.startsWith('LIST ')).length).toBeLessThanOrEqual(10)
})
