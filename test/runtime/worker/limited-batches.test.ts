/** Batches of queues with limits: they bind each task, and a worker claims only what it can start at once. */
import { describe, expect, it } from 'vitest'
import type { Client } from '../../../src/index.ts'
import { type Bench, begin, gate } from '../setup.ts'

const submitAll = async (client: Client, type: string, count: number, group?: (i: number) => string): Promise<void> => {
  await client.submitMany(
    Array.from({ length: count }, (_, i) => ({ type, input: i, ...(group && { group: group(i) }) })),
  )
}

const countOf = async ({ client }: Bench, status: 'running' | 'completed'): Promise<number> =>
  (await client.count({ status })).count

/** The most tasks that were leased at once, until `count` have completed. */
const mostHeld = async (bench: Bench, count: number): Promise<number> => {
  let most = 0
  for (let passed = 0; passed < 60_000; passed++) {
    most = Math.max(most, await countOf(bench, 'running'))
    if ((await countOf(bench, 'completed')) >= count) return most
    await bench.clock.advance(1)
  }
  throw new Error('they did not complete in a minute')
}

const pass = ({ clock }: Bench, length: number): Promise<void> => new Promise((done) => clock.after(length, done))

describe('batches under limits', () => {
  it('have no more tasks than the concurrency of the queue, over all batches', async () => {
    const bench = await begin()
    await bench.client.queue('default').limit({ concurrency: 7 })
    await submitAll(bench.client, 'insert', 40)
    const sizes: number[] = []
    bench.client
      .worker({ concurrency: 3 })
      .handleMany('insert', { size: 5 }, async (tasks) => {
        sizes.push(tasks.length)
        await pass(bench, 3)
        return tasks.map(() => null)
      })
      .start()
    expect(await mostHeld(bench, 40)).toBe(7)
    expect(Math.max(...sizes), 'they are filled as far as the limit allows').toBe(5)
  })

  it('are not claimed ahead of free slots: what waits for a slot would count', async () => {
    const bench = await begin()
    await bench.client.queue('default').limit({ concurrency: 100 })
    await submitAll(bench.client, 'insert', 80)
    bench.client
      .worker({ concurrency: 2 })
      .handleMany('insert', { size: 5 }, async (tasks) => {
        await pass(bench, 3)
        return tasks.map(() => null)
      })
      .start()
    expect(await mostHeld(bench, 80)).toBe(10)
  })

  it('and single tasks are not claimed for the same slot', async () => {
    const bench = await begin()
    await bench.client.queue('default').limit({ concurrency: 100 })
    const end = gate()
    const begun: string[] = []
    bench.client
      .worker({ concurrency: 1 })
      .handleMany('insert', { size: 5, wait: '2s' }, async (tasks) => {
        begun.push(`batch of ${tasks.length}`)
        await end.opened
        return tasks.map(() => null)
      })
      .handle('single', async () => {
        begun.push('single')
        await end.opened
        return null
      })
      .start()
    await submitAll(bench.client, 'insert', 3)
    await bench.clock.advance(500)
    expect(await countOf(bench, 'running'), 'they wait for others').toBe(3)
    await submitAll(bench.client, 'single', 4)
    await bench.clock.advance(500)
    expect(await countOf(bench, 'running'), 'the batch will need the only slot').toBe(3)
    await bench.clock.advance(2_000)
    expect(begun).toEqual(['batch of 3'])
    end.open()
    await mostHeld(bench, 7)
    expect(begun).toEqual(['batch of 3', 'single', 'single', 'single', 'single'])
  })

  it('have no more tasks of a group than the group may run', async () => {
    const bench = await begin()
    await bench.client.queue('default').limit({ perGroup: 2 })
    await submitAll(bench.client, 'insert', 30, (i) => `g${i % 3}`)
    const running: (string | null)[] = []
    let most = 0
    bench.client
      .worker({ concurrency: 2 })
      .handleMany('insert', { size: 10, wait: '50ms' }, async (tasks) => {
        const groups = tasks.map(({ group }) => group)
        running.push(...groups)
        most = Math.max(most, ...groups.map((group) => running.filter((one) => one === group).length))
        await pass(bench, 3)
        for (const group of groups) running.splice(running.indexOf(group), 1)
        return tasks.map(() => null)
      })
      .start()
    await mostHeld(bench, 30)
    expect(most).toBe(2)
  })

  it('start no more tasks than the rate of the queue', async () => {
    const bench = await begin()
    await bench.client.queue('default').limit({ rate: '60/m', burst: 5 })
    await submitAll(bench.client, 'insert', 40)
    let started = 0
    bench.client
      .worker({ concurrency: 2 })
      .handleMany('insert', { size: 10 }, (tasks) => {
        started += tasks.length
        return tasks.map(() => null)
      })
      .start()
    for (let passed = 0; passed < 20_000; passed += 50) await bench.clock.advance(50)
    expect(started).toBeLessThanOrEqual(25)
    expect(started).toBeGreaterThan(15)
  })

  it('are given back when their group is paused while they wait for others', async () => {
    const bench = await begin()
    let started = 0
    bench.client
      .worker({ concurrency: 1 })
      .handleMany('insert', { size: 10, wait: '5s' }, (tasks) => {
        started += tasks.length
        return tasks.map(() => null)
      })
      .start()
    await submitAll(bench.client, 'insert', 4, (i) => `g${i % 2}`)
    await bench.clock.advance(100)
    expect(await countOf(bench, 'running')).toBe(4)
    await bench.client.queue('default').pause({ group: 'g1' })
    await bench.clock.advance(100)
    expect(await countOf(bench, 'running')).toBe(2)
    await bench.clock.advance(6_000)
    expect(started).toBe(2)
  })
})
