/** What several workers spend where one of them could do all the work, and that the others step in, in simulated time. */
import { expect, test } from 'vitest'
import { begin, type Process } from './setup.ts'

const WORKERS = 4
/** 5 tasks a second. */
const EVERY = 200
/** At AWS, of a million. */
const PRICES: Readonly<Record<string, number>> = { PUT: 5, LIST: 5, GET: 0.4, DELETE: 0 }

const race = async (concurrency: number, takes: number) => {
  const { clock, open } = begin()
  const producer = await open()
  const processes = await Promise.all(Array.from({ length: WORKERS }, open))
  const runs = new Map(processes.map((process) => [process, 0]))
  let waits: number[] = []
  for (const process of processes)
    process.client
      .worker({ concurrency })
      .handle('a', async (at) => {
        runs.set(process, runs.get(process)! + 1)
        waits.push(clock.wall() - Number(at))
        if (takes > 0) await new Promise<void>((done) => clock.after(takes, done))
      })
      .start()
  const wait = async (time: number): Promise<void> => {
    for (let passed = 0; passed < time; passed += 20) await clock.advance(20)
  }
  /** How long each task waited for its start. */
  const flow = async (seconds: number): Promise<readonly number[]> => {
    waits = []
    for (let submitted = 0; submitted < seconds * 1_000; submitted += EVERY) {
      await producer.client.submit('a', clock.wall())
      await wait(EVERY)
    }
    await wait(5_000)
    return waits
  }
  const spent = (): number => {
    const counts = [producer, ...processes].flatMap(({ kv }) => Object.entries(kv.take()))
    return counts.reduce((sum, [kind, count]) => sum + PRICES[kind]! * count, 0)
  }
  await flow(20)
  spent()
  const [quickest] = [...runs].reduce((most, one) => (one[1] > most[1] ? one : most))
  return { flow, spent, quickest }
}

/** No request is answered any more. Returns a function that lets its client close. */
const kill = ({ kv }: Process): (() => void) => {
  const end = Promise.withResolvers<never>()
  const never = (): Promise<never> => end.promise
  const gone = { get: never, getChanged: never, create: never, update: never, delete: never, list: never }
  Object.assign(kv, gone)
  return () => {
    for (const name of Object.keys(gone)) Reflect.deleteProperty(kv, name)
    end.reject(new Error('it was killed'))
  }
}

test('four workers that race for 5 tasks a second spend at most $25 on a million', async () => {
  const { flow, spent } = await race(10, 0)
  const waits = await flow(60)
  expect(waits).toHaveLength(300)
  expect(Math.max(...waits)).toBeLessThan(1_500)
  expect(spent() / waits.length).toBeLessThan(25)
})

test('when the quickest of them dies, the others start every task within seconds', async () => {
  const { flow, quickest } = await race(10, 0)
  const revive = kill(quickest)
  const waits = await flow(20).finally(revive)
  expect(waits).toHaveLength(100)
  expect(Math.max(...waits)).toBeLessThan(5_000)
})

test('when the quickest of them is full, the others start every task within seconds', async () => {
  const { flow } = await race(2, 1_000)
  const waits = await flow(60)
  expect(waits.length).toBeGreaterThanOrEqual(300)
  expect(Math.max(...waits)).toBeLessThan(6_000)
})
