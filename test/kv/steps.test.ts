/** What steps, parks and signals cost on S3 and NATS, in requests. */
import { expect, test } from 'vitest'
import type { Handler } from '../../src/index.ts'
import { gate } from '../runtime/setup.ts'
import { begin } from './setup.ts'

/** Runs one task with this handler to its end or its park. */
const run = async (handler: Handler) => {
  const { clock, open } = begin()
  const { client, kv } = await open()
  const worker = client.worker({ concurrency: 1 }).handle('a', handler).start()
  await client.submit('a', 0)
  await clock.advance(8_000)
  const { id } = await client.submit('a', 1)
  kv.take()
  return { clock, client, kv, id, worker }
}

/** Requests of each step of a run, from the end of the one before. */
const costs = async (steps: number, text: string): Promise<readonly Readonly<Record<string, number>>[]> => {
  const seen: Readonly<Record<string, number>>[] = []
  let take: (() => Readonly<Record<string, number>>) | null = null
  const { clock, kv, worker } = await run(async (_, ctx) => {
    for (let i = 0; i < steps; i++) {
      take?.()
      await ctx.step(`step ${i}`, () => text)
      if (take !== null) seen.push(take())
    }
  })
  take = () => kv.take()
  await clock.advance(5_000)
  await worker.stop()
  return seen
}

test('a step with a result of up to 4 KiB is one PUT', async () => {
  for (const text of ['', 'x'.repeat(1_000), 'x'.repeat(4_000)])
    for (const requests of await costs(5, text)) expect(requests).toEqual({ PUT: 1 })
})

test('a step with a longer result is two: the value, and the task', async () => {
  for (const text of ['x'.repeat(4_200), 'x'.repeat(100_000)])
    for (const requests of await costs(5, text)) expect(requests).toEqual({ PUT: 2 })
})

test('the thousandth step costs what the first did: one PUT, and a second one now and then', async () => {
  const requests = await costs(1_000, 'x')
  expect(requests).toHaveLength(1_000)
  const puts = requests.map(({ PUT = 0 }) => PUT)
  expect(puts.filter((count) => count > 2)).toEqual([])
  expect(puts.slice(0, 100).filter((count) => count === 2).length).toBeLessThanOrEqual(1)
  expect(puts.slice(900).filter((count) => count === 2).length).toBeLessThanOrEqual(1)
  expect(requests.filter(({ GET = 0, LIST = 0 }) => GET + LIST > 0)).toEqual([])
})

test('however many steps a task has, a heartbeat writes less than 64 KiB', async () => {
  const end = gate()
  const { clock, kv, worker } = await run(async (input, ctx) => {
    const all = Array.from({ length: 1_000 }, (__, i) => i)
    for (let from = 0; from < 1_000; from += 100)
      await Promise.all(
        all.slice(from, from + 100).map((i) => ctx.step(`step ${i}`, () => 'x'.repeat(i === 7 ? 50_000 : 300))),
      )
    if (input === 1) await end.opened
  })
  await clock.advance(5_000)
  kv.take()
  const sizes: number[] = []
  const update = kv.update.bind(kv)
  kv.update = (key, value, mark) => {
    sizes.push(value.length)
    return update(key, value, mark)
  }
  await clock.advance(30_000)
  expect(sizes.length).toBeGreaterThan(0)
  expect(Math.max(...sizes)).toBeLessThan(65_536)
  end.open()
  await clock.advance(1_000)
  await worker.stop()
})

test('a park is one PUT and the hint of its time, and a parked task costs nothing while it sleeps', async () => {
  const idle = await run(() => {})
  await idle.clock.advance(10_000)
  idle.kv.take()
  await idle.clock.advance(600_000)
  const usual = idle.kv.take()
  await idle.worker.stop()

  const { clock, client, kv, id, worker } = await run((_, ctx) => ctx.waitFor('go'))
  await clock.advance(10_000)
  expect((await client.get(id)).parked).not.toBeNull()
  kv.take()
  await clock.advance(600_000)
  const parked = kv.take()
  for (const kind of ['PUT', 'LIST', 'DELETE']) expect(parked[kind] ?? 0).toBeLessThanOrEqual((usual[kind] ?? 0) + 5)
  expect(kv.log.filter((line) => line.includes(`tasks/${id}`))).toEqual([])
  await worker.stop()
})
