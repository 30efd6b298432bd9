/** The wake object only saves time: nothing depends on it. */
import { expect, test } from 'vitest'
import { addToWake, changesBetween, encodeWake, parseWake } from '../../src/store/kv/hints/wake-body.ts'
import { begin } from './setup.ts'

const NOTHING = { hints: [], unnamed: 0, documents: 0 }

test('what was added between two states is named, in order', () => {
  const before = addToWake(null, { ...NOTHING, hints: ['a'] })
  const after = addToWake(addToWake(before, { ...NOTHING, hints: ['b'] }), { ...NOTHING, hints: ['c'] })
  expect(changesBetween(before, after)).toEqual({ hints: ['b', 'c'], documentsChanged: false })
  expect(changesBetween(after, after)).toEqual({ hints: [], documentsChanged: false })
  expect(parseWake(encodeWake(after))).toMatchObject(after)
})

test('more than it has room for is a gap, and so is what has no names, another object, or none before', () => {
  const before = addToWake(null, NOTHING)
  const names = (count: number, length = 1) => Array.from({ length: count }, (_, n) => `${n}`.padStart(length, 'x'))
  expect(changesBetween(before, addToWake(before, { ...NOTHING, hints: names(201) })).hints).toBeNull()
  expect(changesBetween(before, addToWake(before, { ...NOTHING, hints: names(40, 1_000) })).hints).toBeNull()
  expect(changesBetween(before, addToWake(before, { hints: ['a'], unnamed: 1, documents: 0 })).hints).toBeNull()
  expect(changesBetween(before, addToWake(null, { ...NOTHING, hints: ['a'] })).hints).toBeNull()
  expect(changesBetween(null, before)).toEqual({ hints: null, documentsChanged: true })
  expect(changesBetween(before, addToWake(before, { ...NOTHING, documents: 1 })).documentsChanged).toBe(true)
})

test('what is not of this release is no wake object', () => {
  for (const text of ['', '{}', '[]', 'null', '{"sequence":1}']) expect(parseWake(text)).toBeNull()
})

const idleWorker = async () => {
  const scene = begin()
  const [producer, consumer] = [await scene.open(), await scene.open()]
  const runs: unknown[] = []
  const worker = consumer.client.worker().handle('a', async (input) => void runs.push(input))
  worker.start()
  const seconds = async (count: number): Promise<void> => {
    for (let tick = 0; tick < count * 10; tick++) await scene.clock.advance(100)
  }
  await seconds(130)
  consumer.kv.take()
  return { ...scene, producer, consumer, runs, worker, seconds }
}

test('an idle worker learns of a task within 3 s and of the next at once, without a list', async () => {
  const { producer, consumer, runs, seconds, worker } = await idleWorker()
  await producer.client.submit('a', 1)
  await seconds(3.2)
  expect(runs).toEqual([1])
  await producer.client.submit('a', 2)
  await seconds(0.6)
  expect(runs).toEqual([1, 2])
  expect(consumer.kv.log.filter((line) => line.startsWith('LIST ready/')).length).toBeLessThanOrEqual(1)
  await worker.stop()
})

test('a task that was not announced is found by a list within a minute', async () => {
  const { producer, map, runs, seconds, worker } = await idleWorker()
  const wake = map.entries.get('wake.json')
  await producer.client.submit('a', 1)
  // As if its writer had died before it announced the task.
  if (wake === undefined) map.entries.delete('wake.json')
  else map.entries.set('wake.json', wake)
  await seconds(61)
  expect(runs).toEqual([1])
  await worker.stop()
})

test('an object that was deleted or is not ours costs a list, and works again', async () => {
  const { producer, map, runs, seconds, worker } = await idleWorker()
  await producer.client.submit('a', 1)
  await seconds(4)
  map.entries.delete('wake.json')
  await seconds(4)
  map.entries.set('wake.json', { value: 'nonsense', mark: 'other' })
  await producer.client.submit('a', 2)
  await seconds(4)
  expect(runs).toEqual([1, 2])
  await worker.stop()
})

test('a task that is put off is known to others from then on, and run by them when its worker is gone', async () => {
  const { producer, consumer, clock, runs, seconds, worker } = await idleWorker()
  const first = producer.client.worker().handle('b', async (_, ctx) => ctx.reschedule('60s'))
  first.start()
  await producer.client.submit('b', 1)
  await seconds(5)
  await first.stop()
  consumer.client
    .worker()
    .handle('b', async () => void runs.push('b'))
    .start()
  const begun = clock.wall()
  consumer.kv.take()
  while (runs.length === 0 && clock.wall() - begun < 120_000) await clock.advance(500)
  expect(clock.wall() - begun).toBeLessThan(61_000)
  await worker.stop()
})
