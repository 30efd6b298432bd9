/** SPEC 9: the limits of a queue bind every way to claim, over all processes. */
import { describe, expect, it } from 'vitest'
import { type Client, RescheduleError, type Worker } from '../../../src/index.ts'
import { type Bench, begin, gate, refuses } from '../setup.ts'

const submitGroups = async (
  client: Client,
  groups: readonly (string | null)[],
  queue = 'default',
): Promise<string[]> => {
  const tasks = await client.submitMany(
    groups.map((group, i) => ({ type: 'work', input: i, queue, ...(group === null ? null : { group }) })),
  )
  return tasks.map((result) => (result.ok ? result.task.id : ''))
}

interface Watch {
  readonly worker: Worker
  /** Groups of running handlers. */
  readonly running: string[]
  most: number
  /** Groups in the order in which they began, with the instant. */
  readonly begun: { readonly group: string; readonly at: number }[]
}

/** A worker whose handlers take `length` milliseconds. */
const watchedWorker = (bench: Bench, client: Client, length: number, concurrency = 10): Watch => {
  const watch: Watch = {
    worker: client.worker({ concurrency, pollInterval: '1s' }),
    running: [],
    most: 0,
    begun: [],
  }
  watch.worker.handle('work', async (_, ctx) => {
    const group = ctx.task.group ?? '-'
    watch.running.push(group)
    watch.most = Math.max(watch.most, watch.running.length)
    watch.begun.push({ group, at: bench.clock.wall() })
    await new Promise<void>((done) => bench.clock.after(length, done))
    watch.running.splice(watch.running.indexOf(group), 1)
    return null
  })
  return watch
}

const untilCompleted = async (bench: Bench, count: number, step = 10): Promise<void> => {
  for (let passed = 0; passed < 3_600_000; passed += step) {
    if ((await bench.client.count({ status: 'completed' })).count >= count) return
    await bench.clock.advance(step)
  }
  throw new Error('they did not complete in an hour')
}

describe('the concurrency of a queue', () => {
  it('is never exceeded by workers of several processes, and is used', async () => {
    const bench = await begin()
    await bench.client.queue('default').limit({ concurrency: 3 })
    await submitGroups(
      bench.client,
      Array.from({ length: 20 }, () => null),
    )
    const watches = [bench.client, await bench.another()].map((client) => watchedWorker(bench, client, 50))
    let most = 0
    for (const { worker } of watches) worker.start()
    for (let i = 0; i < 200; i++) {
      most = Math.max(most, watches[0]!.running.length + watches[1]!.running.length)
      await bench.clock.advance(5)
    }
    await untilCompleted(bench, 20)
    expect(most).toBe(3)
  })

  it('binds claimNext and claim by id, which says why', async () => {
    const { client } = await begin()
    await client.queue('default').limit({ concurrency: 1 })
    const [first, second] = await submitGroups(client, [null, null])
    const lease = await client.claim(first!, { workerId: 'one' })
    expect(await client.claimNext({ workerId: 'two' })).toBeNull()
    await refuses('LIMIT_REACHED', "queue 'default' has 1 of 1 running")(client.claim(second!, { workerId: 'two' }))
    const again = await client.claim(first!, { workerId: 'one' })
    expect([again.token, again.fence]).toEqual([lease.token, 1])
    await lease.complete()
    expect((await client.claim(second!, { workerId: 'two' })).fence).toBe(1)
  })

  it('[Z02] is gone when it is removed', async () => {
    const { client } = await begin()
    await client.queue('default').limit({ concurrency: 1 })
    expect(await client.queue('default').limits()).toMatchObject({ concurrency: 1, by: 'test' })
    await submitGroups(client, [null, null])
    await client.claimNext({ workerId: 'one' })
    await client.queue('default').limit(null)
    expect(await client.queue('default').limits()).toBeNull()
    expect(await client.claimNext({ workerId: 'one' })).not.toBeNull()
  })

  it('takes nothing ahead: what a worker holds without starting it would count', async () => {
    const bench = await begin()
    await bench.client.queue('default').limit({ concurrency: 100 })
    await submitGroups(
      bench.client,
      Array.from({ length: 60 }, () => null),
    )
    const watch = watchedWorker(bench, bench.client, 3, 4)
    watch.worker.start()
    let held = 0
    for (let i = 0; i < 30; i++) {
      await bench.clock.advance(1)
      held = Math.max(held, (await bench.client.count({ status: 'running' })).count)
    }
    expect(held).toBeLessThanOrEqual(4)
    await untilCompleted(bench, 60, 3)
  })
})

describe('places per group', () => {
  it('are never exceeded, and a full group does not hold up the others', async () => {
    const bench = await begin()
    await bench.client.queue('default').limit({ perGroup: 2 })
    await submitGroups(bench.client, [...Array.from({ length: 30 }, () => 'big'), 'a', 'b', null])
    const watch = watchedWorker(bench, bench.client, 100)
    watch.worker.start()
    await bench.clock.advance(20)
    expect(watch.running.toSorted()).toEqual(['-', 'a', 'b', 'big', 'big'])
    let most = 0
    for (let i = 0; i < 60; i++) {
      await bench.clock.advance(10)
      most = Math.max(most, watch.running.filter((group) => group === 'big').length)
    }
    expect(most).toBe(2)
    await untilCompleted(bench, 33)
  })

  it('one at a time: no task of an account begins before the one before has ended', async () => {
    const bench = await begin()
    await bench.client.queue('default').limit({ perGroup: 1 })
    await submitGroups(bench.client, ['a', 'a', 'a', 'b', 'b'])
    const watch = watchedWorker(bench, bench.client, 40)
    watch.worker.start()
    await untilCompleted(bench, 5, 5)
    for (const group of ['a', 'b']) {
      const starts = watch.begun.filter((one) => one.group === group).map(({ at }) => at)
      for (const [i, at] of starts.entries()) if (i > 0) expect(at - starts[i - 1]!).toBeGreaterThanOrEqual(40)
    }
  })

  it('say who holds them in why and in the error of a claim by id', async () => {
    const bench = await begin()
    const { client } = bench
    await client.queue('default').limit({ perGroup: 2 })
    const ids = await submitGroups(client, ['acme', 'acme', 'acme'])
    await client.claim(ids[0]!, { workerId: 'worker-3' })
    await client.claim(ids[1]!, { workerId: 'worker-7' })
    const why = "group 'acme' has 2 of 2 running (worker-3, worker-7)"
    await refuses('LIMIT_REACHED', why)(client.claim(ids[2]!, { workerId: 'worker-9' }))
    const serving = client.worker({ concurrency: 1 }).handle('work', async () => null)
    serving.start()
    await bench.clock.advance(50)
    const explained = await client.why(ids[2]!)
    expect([explained.reason, explained.sentence]).toEqual(['held-back', expect.stringContaining(why)])
  })
})

describe('turns of groups', () => {
  it('serve small groups as if the large one were not there', async () => {
    const bench = await begin()
    await bench.client.queue('default').limit({ fair: true })
    await submitGroups(bench.client, [
      ...Array.from({ length: 500 }, () => 'noisy'),
      ...Array.from({ length: 9 }, (_, i) => [`g${i}`, `g${i}`]).flat(),
    ])
    const watch = watchedWorker(bench, bench.client, 20, 2)
    watch.worker.start()
    for (let i = 0; i < 400 && watch.begun.filter(({ group }) => group !== 'noisy').length < 18; i++)
      await bench.clock.advance(5)
    // Perfect turns need 20 starts for two tasks of each of ten groups; some more were fetched ahead.
    expect(watch.begun.length).toBeLessThanOrEqual(30)
  })
})

describe('drain', () => {
  it('runs what its own places held back, and leaves what waits for a permit, a pause or the places of others', async () => {
    const { client, passing } = await begin()
    const drained = async (queue: string): Promise<number> => {
      const worker = client.worker({ concurrency: 4, queues: [queue] }).handle('work', async () => null)
      await passing(worker.drain())
      return (await client.count({ queue, status: 'completed' })).count
    }
    for (const queue of ['narrow', 'rated', 'paused', 'taken'])
      await submitGroups(client, ['a', 'a', 'a', 'b', 'b'], queue)
    await client.queue('narrow').limit({ concurrency: 2, perGroup: 1 })
    await client.queue('rated').limit({ rate: '2/1h', burst: 2 })
    await client.queue('paused').pause({ group: 'a', reason: 'unpaid' })
    await client.queue('taken').limit({ perGroup: 1 })
    await client.claimNext({ workerId: 'another', queue: 'taken', leaseTtl: '1h' })
    expect(await drained('narrow')).toBe(5)
    expect(await drained('rated')).toBe(2)
    expect(await drained('paused')).toBe(2)
    expect(await drained('taken')).toBe(2)
  })
})

describe('a rate', () => {
  const starts = async (
    limit: object,
    groups: readonly (string | null)[],
    duration: number,
  ): Promise<Watch['begun']> => {
    const bench = await begin()
    await bench.client.queue('default').limit(limit)
    await submitGroups(bench.client, groups)
    const watches = [bench.client, await bench.another(), await bench.another()].map((client) =>
      watchedWorker(bench, client, 1),
    )
    for (const { worker } of watches) worker.start()
    for (let passed = 0; passed < duration; passed += 25) await bench.clock.advance(25)
    return watches.flatMap(({ begun }) => begun).toSorted((a, b) => a.at - b.at)
  }

  const mostWithin = (begun: Watch['begun'], window: number): number =>
    Math.max(...begun.map(({ at }) => begun.filter((one) => one.at >= at && one.at < at + window).length))

  it('of 60 a minute starts at most 60 in any minute, and nearly as many', async () => {
    const begun = await starts(
      { rate: '60/1m' },
      Array.from({ length: 300 }, () => null),
      180_000,
    )
    expect(mostWithin(begun, 60_000)).toBeLessThanOrEqual(60)
    expect(begun.length).toBeGreaterThanOrEqual(3 * 57)
  })

  it('of a group binds each group by itself, and ungrouped tasks not at all', async () => {
    const groups = [...Array.from({ length: 40 }, () => 'a'), ...Array.from({ length: 40 }, () => 'b'), null, null]
    const begun = await starts({ ratePerGroup: '10/10s' }, groups, 20_000)
    for (const group of ['a', 'b']) {
      const own = begun.filter((one) => one.group === group)
      expect(mostWithin(own, 10_000)).toBeLessThanOrEqual(10)
      expect(own.length).toBeGreaterThanOrEqual(18)
    }
    expect(begun.filter(({ group }) => group === '-')).toHaveLength(2)
  })

  it.each([
    ['1/10s', 10_000],
    ['1/1m', 60_000],
  ])(
    'of %s of a group leaves nothing behind when its window is over, and goes on to bind',
    async (ratePerGroup, window) => {
      const bench = await begin()
      await bench.client.queue('default').limit({ ratePerGroup })
      const watch = watchedWorker(bench, bench.client, 1, 100)
      watch.worker.start()
      const kept = async (): Promise<number> => (await bench.store.documents.list('rate/group/')).length
      await submitGroups(
        bench.client,
        Array.from({ length: 60 }, (_, i) => `customer ${i}`),
      )
      await bench.clock.advance(1_000)
      expect(watch.begun).toHaveLength(60)
      expect(await kept()).toBe(60)
      // One customer goes on, and the worker meets the documents of the others.
      await submitGroups(
        bench.client,
        Array.from({ length: 20 }, () => 'customer 7'),
      )
      for (let i = 0; i < 5; i++) await bench.clock.advance(window)
      expect(await kept()).toBe(1)
      const own = watch.begun.filter(({ group }) => group === 'customer 7')
      expect(mostWithin(own, window)).toBe(1)
      expect(own.length).toBeGreaterThanOrEqual(4)
      await bench.passing(watch.worker.stop())
    },
  )

  it('is not used up by workers that find nothing', async () => {
    const bench = await begin()
    await bench.client.queue('default').limit({ rate: '1/1h' })
    const watch = watchedWorker(bench, bench.client, 1)
    watch.worker.start()
    await bench.clock.advance(30_000)
    await submitGroups(bench.client, [null, null])
    await bench.clock.advance(2_000)
    expect(watch.begun).toHaveLength(1)
  })

  it('refuses a claim by id without a permit, and why tells until when', async () => {
    const bench = await begin()
    const { client } = bench
    await client.queue('default').limit({ rate: '1/1h' })
    const ids = await submitGroups(client, [null, null])
    await client.claim(ids[0]!, { workerId: 'one' })
    await refuses(
      'LIMIT_REACHED',
      /queue 'default' has no permits until \d{4}-/,
    )(client.claim(ids[1]!, { workerId: 'one' }))
  })
})

describe('a paused group', () => {
  it('does not run until it is resumed, and the others go on', async () => {
    const bench = await begin()
    const { client } = bench
    await client.queue('default').pause({ group: 'acme', reason: 'unpaid' })
    const ids = await submitGroups(client, ['acme', 'other', null])
    const watch = watchedWorker(bench, client, 1)
    watch.worker.start()
    await bench.clock.advance(200)
    expect(watch.begun.map(({ group }) => group).toSorted()).toEqual(['-', 'other'])
    expect((await client.why(ids[0]!)).sentence).toContain("Its group 'acme' is paused in queue 'default'")
    await refuses('QUEUE_PAUSED', "group 'acme'")(client.claim(ids[0]!, { workerId: 'w' }))
    await client.queue('default').resume({ group: 'acme' })
    await bench.clock.advance(6_000)
    expect(watch.begun.map(({ group }) => group)).toContain('acme')
  })

  it('is asked for by a task that met a limit elsewhere, and ends by itself', async () => {
    const bench = await begin()
    const { client } = bench
    await submitGroups(client, ['acme', 'acme', 'other', 'other'])
    const opened = gate()
    const begun: string[] = []
    const worker = client.worker({ concurrency: 1, pollInterval: '1s' }).handle('work', async (_, ctx) => {
      begun.push(ctx.task.group!)
      if (begun.length === 1) throw new RescheduleError('30s', { pause: 'group' })
      return opened.open()
    })
    worker.start()
    await bench.clock.advance(10_000)
    expect(begun).toEqual(['acme', 'other', 'other'])
    await bench.clock.advance(30_000)
    expect(begun).toEqual(['acme', 'other', 'other', 'acme', 'acme'])
  })
})
