/** What a task costs, and what an idle worker costs, in requests. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { complete } from '../../src/core/machine.ts'
import { want } from '../../src/testing/conformance/build.ts'
import { idleMonth } from './idle-month.ts'
import { begin } from './setup.ts'

const TASKS = 20

/** After this long a task has been found, has ended, and is in the index. */
const ENTERED = 8_000

test('a task that is submitted here and run there costs 4 PUT, 1 GET, 1 DELETE, its share of the wake object and of a segment', async () => {
  const { clock, open } = begin()
  const [producer, consumer] = [await open(), await open()]
  const worker = consumer.client.worker({ concurrency: TASKS }).handle('a', async () => null)
  worker.start()
  await clock.advance(1)
  await producer.client.submit('a', 0)
  await clock.advance(ENTERED)
  for (const { kv } of [producer, consumer]) kv.take()
  for (let i = 0; i < TASKS; i++) await producer.client.submit('a', i)
  // One write of the wake object. The next one announces everything that came meanwhile.
  expect(producer.kv.take()).toEqual({ PUT: 2 * TASKS + 1 })
  for (let tick = 0; tick < 20; tick++) await clock.advance(100)
  expect(producer.kv.take()).toEqual({ PUT: 1 })
  expect((await producer.client.count({ status: 'completed' })).count).toBe(TASKS + 1)
  const reads = consumer.kv.log.filter((line) => line === 'GET wake.json').length
  expect(reads).toBeLessThanOrEqual(20)
  const { PUT, GET, LIST = 0 } = consumer.kv.take()
  expect(PUT).toBe(2 * TASKS)
  expect(GET).toBe(TASKS + reads)
  expect(LIST).toBe(0)
  await clock.advance(ENTERED)
  // One segment of the index for all of them. Then their hints are deleted in one request.
  expect(consumer.kv.log.filter((line) => line.startsWith('PUT ended/'))).toHaveLength(1)
  expect(consumer.kv.log.filter((line) => line.startsWith('DELETE ready/'))).toHaveLength(1)
  producer.kv.take()
  expect((await producer.client.count({ status: 'completed' })).count).toBe(TASKS + 1)
  expect(producer.kv.take()).toEqual({ LIST: 2 })
  await worker.stop()
})

test('a process that submits and works does not even read the task', async () => {
  const { clock, open } = begin()
  const { client, kv } = await open()
  const worker = client.worker({ concurrency: TASKS }).handle('a', async () => null)
  worker.start()
  await client.submit('a', 0)
  await clock.advance(ENTERED)
  kv.take()
  await client.submitMany(Array.from({ length: TASKS }, (_, i) => ({ type: 'a', input: i })))
  await clock.advance(100)
  expect(kv.log.filter((line) => line.startsWith('GET tasks/'))).toEqual([])
  const { PUT } = kv.take()
  // One bundle for all of them, and one write of the wake object.
  expect(PUT).toBe(3 * TASKS + 1 + 1)
  await clock.advance(ENTERED)
  expect(kv.log.filter((line) => line.startsWith('PUT ended/'))).toHaveLength(1)
  // A survey that finds no task left in the bundle deletes it again, which costs nothing.
  expect(kv.log.filter((line) => line.startsWith('DELETE ready/')).length).toBeLessThanOrEqual(2)
  await worker.stop()
})

test('a batch costs 3 PUT and a tenth a task, 1 GET where another runs it, and a delete for 20', async () => {
  const { clock, open } = begin()
  const [producer, consumer] = [await open(), await open()]
  const many = 10 * TASKS
  const worker = consumer.client.worker({ concurrency: many }).handle('a', async () => null)
  worker.start()
  await producer.client.submit('a', 0)
  await clock.advance(ENTERED)
  for (const { kv } of [producer, consumer]) kv.take()
  await producer.client.submitMany(Array.from({ length: many }, (_, i) => ({ type: 'a', input: i })))
  expect(producer.kv.take()).toEqual({ PUT: many + many / 20 + 1 })
  for (let tick = 0; tick < 25; tick++) await clock.advance(100)
  const { PUT, GET, DELETE } = consumer.kv.take()
  await clock.advance(ENTERED)
  expect((await producer.client.count({ status: 'completed' })).count).toBe(many + 1)
  // Beside claims and ends: one segment of the index for 50 tasks or more.
  expect(PUT).toBeLessThanOrEqual(2 * many + many / 50 + 2)
  expect(GET).toBeLessThanOrEqual(many + 2 + 25)
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
  // For the task that exists: the attempt to create its key.
  expect(kv.take()['PUT']).toBe(2 * (TASKS - 1) + 1 + 1)
})

test('an idle worker costs under a dollar a month, whether it serves one queue or five [U16]', async () => {
  for (const one of idleMonth.cases) expect((await idleMonth.measure(one)).dollars).toBeLessThan(1)
})

test('what an idle worker costs is what docs/stores/s3.md says: node bench/s3-costs.ts prints it', async () => {
  const page = readFileSync(join(import.meta.dirname, '../../docs/stores/s3.md'), 'utf8')
  expect(page).toContain(await idleMonth.table())
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

test('a pause by another process is seen within 5 s, without a request for it', async () => {
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

test('a resume and a new schedule are seen within 5 s, also by a worker of queues that were never used', async () => {
  const { clock, open } = begin()
  const [operator, other] = [await open(), await open()]
  await operator.client.queue('never').pause()
  let runs = 0
  const worker = other.client.worker({ queues: ['never', 'unused'] }).handle('a', async () => void runs++)
  worker.start()
  for (let second = 0; second < 90; second++) await clock.advance(1_000)
  await operator.client.submit('a', 0, { queue: 'never' })
  for (let second = 0; second < 30; second++) await clock.advance(1_000)
  expect(runs).toBe(0)
  await operator.client.queue('never').resume()
  for (let second = 0; second < 5; second++) await clock.advance(1_000)
  expect(runs).toBe(1)
  for (let second = 0; second < 90; second++) await clock.advance(1_000)
  await operator.client.schedules.create({ id: 's', type: 'a', every: '1s', input: 0, options: { queue: 'unused' } })
  for (let second = 0; second < 7; second++) await clock.advance(1_000)
  expect(runs).toBeGreaterThan(1)
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

test('behind a long line, many small claims share one list, and no task is leased twice', async () => {
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

const limits = {
  concurrency: 5,
  notAfter: null,
  turns: { perGroup: 2, after: null, mostEach: 10, without: [], only: null, passed: [] },
}

test('under limits of queue and group a task that runs alone costs 4 PUT more: a place in each register, taken and given up', async () => {
  const { clock, open } = begin()
  const { client, store, kv } = await open()
  const look = (op: string) => store.claim(want({ limits, op, now: null, leaseTtl: 30_000, types: ['a'] }))
  const run = async (op: string): Promise<Record<string, number>> => {
    await client.submit('a', null, { group: 'g' })
    kv.take()
    const { leased } = await look(op)
    const ends = leased.map((held) =>
      complete(held, { token: held.lease!.token }, { text: 'null', encoding: 'json' }, clock.wall()),
    )
    expect(await store.commit(ends)).toEqual(['written'])
    // The places are given up in the background.
    await look(`${op} again`)
    return kv.take()
  }
  await run('first')
  const { PUT, GET = 0 } = await run('second')
  // The claim and the end, and two writes of each register. The registers are known from the first task.
  expect([PUT, GET]).toEqual([2 + 4, 0])
})

test('under limits a claim of several tasks takes their places in one PUT for the queue and one for each group', async () => {
  const { open } = begin()
  const { client, store, kv } = await open()
  await client.submitMany(Array.from({ length: 8 }, (_, n) => ({ type: 'a', input: n, group: `g${n % 4}` })))
  kv.take()
  const look = (op: string) => store.claim(want({ limits, op, now: null, leaseTtl: 30_000, types: ['a'], limit: 4 }))
  const { leased } = await look('one')
  expect(leased).toHaveLength(4)
  expect(kv.log.filter((line) => line.startsWith('PUT places/'))).toHaveLength(1 + 4)
  expect(kv.take()['PUT']).toBe(4 + 1 + 4)
  // One place of the queue is left, and then none: no task is read, and within 100 ms no register.
  expect((await look('two')).leased).toHaveLength(1)
  kv.take()
  const { leased: none, isHeldBack } = await look('three')
  expect([none, isHeldBack]).toEqual([[], true])
  expect(kv.log.filter((line) => /^(PUT|GET) /.test(line))).toEqual([])
})
