import { describe, expect, it } from 'vitest'
import type { Store } from '../../../src/store/store.ts'
import { begin, gate, shown } from '../setup.ts'

describe('what a worker takes', () => {
  it('[P01][A17] higher priority first, then what was due first, then the order of submission', async () => {
    const { client, clock } = await begin()
    await client.submit('work', 'early')
    await clock.advance(1)
    await client.submit('work', 'low', { priority: -5 })
    await client.submit('work', 'one')
    await client.submit('work', 'two')
    await client.submit('work', 'high', { priority: 5 })
    await client.submit('work', 'highest', { priority: 1000 })
    const order: unknown[] = []
    client
      .worker({ concurrency: 1 })
      .handle('work', (input) => void order.push(input))
      .start()
    await clock.settle()
    expect(order).toEqual(['highest', 'high', 'early', 'one', 'two', 'low'])
  })

  it('[P02][Z04] a retried task goes behind what was due before it', async () => {
    const { client, clock } = await begin({ random: () => 0 })
    const order: unknown[] = []
    await client.submit('work', 'a')
    await clock.advance(5)
    await client.submit('work', 'b')
    await clock.advance(5)
    client
      .worker({ concurrency: 1 })
      .handle('work', (input, ctx) => {
        order.push(input)
        if (input === 'a' && ctx.attempt === 1) throw new Error('again')
      })
      .start()
    await clock.settle()
    expect(order).toEqual(['a', 'b', 'a'])
  })

  it('[A02][N01][N10] only types that it handles, in the queues that it serves, and no more at once than it is told', async () => {
    const { client, clock } = await begin()
    const end = gate()
    let most = 0
    let now = 0
    client
      .worker({ concurrency: 3 })
      .handle('mine', async () => {
        most = Math.max(most, ++now)
        await end.opened
        now--
      })
      .start()
    const other = await client.submit('other', {})
    const elsewhere = await client.submit('mine', {}, { queue: 'elsewhere' })
    const mine = await client.submitMany(Array.from({ length: 10 }, () => ({ type: 'mine', input: {} })))
    await clock.settle()
    expect(now).toBe(3)
    end.open()
    await clock.settle()
    expect(most).toBe(3)
    await clock.advance(120_000)
    for (const result of mine) expect(result.ok && (await client.get(result.task.id)).status).toBe('completed')
    expect(shown(await client.get(other.id))).toMatchObject({ status: 'pending', attempts: 0 })
    expect(shown(await client.get(elsewhere.id))).toMatchObject({ status: 'pending', attempts: 0 })
  })

  it('looks again no sooner than it may ask for what is overdue, however the clock rounds', async () => {
    let looks = 0
    let [at, atOnce, most] = [-1, 0, 0]
    const { client, clock, another } = await begin()
    await client.submit('work', {})
    const gone = await another({ vanishes: true })
    await gone.claimNext({ types: ['work'], workerId: 'gone', leaseTtl: '60s' })
    // 100 ms later is 99.99999999999272 ms later: the sum passes a power of two.
    await clock.advance(65_488.090033670254)
    const counted = (store: Store): Store => {
      const claim: Store['claim'] = async (request) => {
        looks++
        atOnce = clock.mono() === at ? atOnce + 1 : 1
        at = clock.mono()
        most = Math.max(most, atOnce)
        // It would never end: no timer fires before it.
        if (atOnce > 50) await new Promise(() => {})
        return store.claim(request)
      }
      return new Proxy(store, {
        get: (target, name) => (name === 'claim' ? claim : Reflect.get(target, name, target)),
      })
    }
    const watcher = await another({ through: counted })
    // The lease has lapsed, and the newcomer may not take it yet.
    watcher
      .worker()
      .handle('work', () => {})
      .start()
    await clock.advance(5_000)
    expect(looks).toBeGreaterThan(40)
    expect(most, 'looks at the same instant').toBeLessThan(5)
  })

  it('starts a task that wakes it without asking for what is overdue, and asks with the next look', async () => {
    const { client, clock, another } = await begin()
    const looks: string[] = []
    const watched = (store: Store): Store => {
      const claim: Store['claim'] = async (request) => {
        const found = await store.claim(request)
        looks.push(`${found.leased.length} leased, ${request.dueLimit > 0 ? 'asks' : 'does not ask'}`)
        return found
      }
      return new Proxy(store, {
        get: (target, name) => (name === 'claim' ? claim : Reflect.get(target, name, target)),
      })
    }
    const watcher = await another({ through: watched })
    watcher
      .worker()
      .handle('work', () => {})
      .start()
    await clock.advance(1_000)
    for (const since of [200, 2_000]) {
      await clock.advance(since)
      looks.length = 0
      await client.submit('work', {})
      await clock.advance(10_000)
      expect(looks.slice(0, 2)).toEqual(['1 leased, does not ask', '0 leased, asks'])
    }
  })

  it('claims from a full queue twice at once, but not while the store says that this slows it down', async () => {
    const { client, clock, another } = await begin()
    let [isCongested, now, most] = [false, 0, 0]
    const slow = (store: Store): Store => {
      const claim: Store['claim'] = async (request) => {
        most = Math.max(most, ++now)
        await new Promise<void>((done) => void clock.after(5, done))
        now--
        return store.claim(request)
      }
      const changed: Partial<Store> = { claim, claimsAtOnce: 2, isCongested: () => isCongested }
      return new Proxy(store, {
        get: (target, name) => Reflect.get(changed, name) ?? Reflect.get(target, name, target),
      })
    }
    const slowed = await another({ through: slow })
    await client.submitMany(Array.from({ length: 10_000 }, () => ({ type: 'work', input: {} })))
    slowed
      .worker({ concurrency: 20 })
      .handle('work', () => {})
      .start()
    await clock.advance(25)
    expect(most).toBe(2)
    isCongested = true
    await clock.advance(6)
    most = 0
    await clock.advance(15)
    expect(most).toBe(1)
  })

  it('several queues are served in turn: a full one does not starve the others', async () => {
    const { client, clock } = await begin()
    for (let i = 0; i < 100; i++) await client.submit('work', `bulk ${i}`, { queue: 'bulk' })
    await client.submit('work', 'mail', { queue: 'mail' })
    const order: unknown[] = []
    client
      .worker({ concurrency: 1, queues: ['bulk', 'mail'] })
      .handle('work', (input) => void order.push(input))
      .start()
    await clock.settle()
    expect(order).toHaveLength(101)
    expect(order.indexOf('mail')).toBeLessThan(30)
  })

  it('[M01] a task for later is run when it is due, and not before', async () => {
    const { client, clock } = await begin()
    const ranAt: number[] = []
    client
      .worker()
      .handle('work', () => void ranAt.push(clock.wall()))
      .start()
    const by = await client.submit('work', {}, { delay: '90s' })
    const at = await client.submit('work', {}, { at: new Date(clock.wall() + 45_000) })
    await clock.advance(120_000)
    expect(ranAt).toEqual([at.availableAt, by.availableAt])
    expect(by.availableAt - at.availableAt).toBe(45_000)
  })

  it('[D12] a store may show a task late: the submit stands, and the worker finds the task without being woken again', async () => {
    const LATE = 7_000
    const showsLate = (store: Store): Store =>
      new Proxy(store, {
        get(target, name) {
          const value: unknown = Reflect.get(target, name, target)
          if (name !== 'claim') return typeof value === 'function' ? value.bind(target) : value
          return async (want: Parameters<Store['claim']>[0]) => {
            const shown = (await target.list({}, { order: 'oldest', limit: 10, now: null })).tasks
            const isYoung = shown.some((task) => task.status === 'pending' && clock.wall() - task.createdAt < LATE)
            return target.claim(isYoung ? { ...want, limit: 0 } : want)
          }
        },
      })
    const { client, clock } = await begin({ through: showsLate })
    const ran: number[] = []
    client
      .worker()
      .handle('work', () => void ran.push(clock.wall()))
      .start()
    await clock.advance(1_000)
    const { id, createdAt } = await client.submit('work', {})
    expect(await client.claimNext({ workerId: 'w' }), 'not yet claimable').toBeNull()
    expect((await client.get(id)).status, 'but there').toBe('pending')
    await clock.advance(LATE - 1)
    expect(ran).toEqual([])
    await clock.advance(5_000)
    expect(ran).toHaveLength(1)
    expect(ran[0]! - createdAt).toBeGreaterThanOrEqual(LATE)
    expect((await client.get(id)).attempts).toBe(1)
  })

  it('wakes for work submitted elsewhere within its poll interval, and at once where the store can tell', async () => {
    const { client, clock, another } = await begin()
    const ranAt: number[] = []
    client
      .worker({ pollInterval: '1s' })
      .handle('work', () => void ranAt.push(clock.wall()))
      .start()
    await clock.advance(300)
    await (await another()).submit('work', {})
    await clock.settle()
    expect(ranAt).toEqual([clock.wall()])
  })
})

describe('fetching ahead', () => {
  it('behind slow handlers goes back within about a second, so that idle workers can have it', async () => {
    const { client, clock } = await begin()
    for (let i = 0; i < 50; i++) await client.submit('work', i)
    client
      .worker({ concurrency: 4 })
      .handle('work', () => new Promise(() => {}))
      .start()
    await clock.settle()
    expect((await client.count({ status: 'running' })).count).toBeLessThanOrEqual(8)
    await clock.advance(2_000)
    expect((await client.count({ status: 'running' })).count).toBe(4)
    await clock.advance(60_000)
    expect((await client.count({ status: 'running' })).count, 'and is not fetched again').toBe(4)
  })

  it('never holds more unstarted tasks than it started in the last second', async () => {
    const { client, clock } = await begin()
    const wait = gate()
    let started = 0
    client
      .worker({ concurrency: 1 })
      .handle('work', async () => {
        if (++started > 30) await wait.opened
      })
      .start()
    for (let i = 0; i < 500; i++) await client.submit('work', i)
    await clock.settle()
    const { count: running } = await client.count({ status: 'running' })
    expect(started).toBe(31)
    expect(running - 1).toBeLessThanOrEqual(started)
  })
})

describe('a paused queue', () => {
  it('is seen within 5 s: running tasks go on, fetched-ahead ones are released, nothing new is taken', async () => {
    const { client, clock, another } = await begin()
    const first = gate()
    client
      .worker({ concurrency: 1 })
      .handle('work', async (input) => {
        if (input === 'first') await first.opened
      })
      .start()
    for (let i = 0; i < 20; i++) await client.submit('work', 'warm')
    await clock.settle()
    const running = await client.submit('work', 'first')
    const ahead = await client.submit('work', 'ahead')
    await clock.settle()
    expect((await client.get(ahead.id)).status).toBe('running')
    const elsewhere = await another()
    await elsewhere.queue('default').pause({ reason: 'deploy' })
    await elsewhere.queue('default').pause()
    expect(await elsewhere.queue('default').isPaused()).toBe(true)
    await clock.advance(5_000)
    expect(shown(await client.get(ahead.id))).toMatchObject({ status: 'pending', retryCount: 0 })
    expect((await client.get(running.id)).status).toBe('running')
    first.open()
    const later = await client.submit('work', 'later')
    await clock.advance(30_000)
    expect((await client.get(running.id)).status).toBe('completed')
    expect((await client.get(later.id)).status).toBe('pending')
    await elsewhere.queue('default').resume()
    await elsewhere.queue('default').resume()
    await clock.advance(5_000)
    expect((await client.get(later.id)).status).toBe('completed')
    expect((await client.get(ahead.id)).status).toBe('completed')
  })

  it('accepts tasks, gives none to claimNext, and says so to a claim by id', async () => {
    const { client } = await begin()
    await client.queue('slow').pause()
    const { id } = await client.submit('work', {}, { queue: 'slow' })
    expect(await client.claimNext({ workerId: 'w', queue: 'slow' })).toBeNull()
    await expect(client.claim(id, { workerId: 'w' })).rejects.toMatchObject({ code: 'QUEUE_PAUSED' })
    await client.queue('slow').resume()
    expect((await client.claimNext({ workerId: 'w', queue: 'slow' }))?.task.id).toBe(id)
  })

  it('of several only the paused one stands still', async () => {
    const { client, clock } = await begin()
    await client.queue('a').pause()
    const [a, b] = [await client.submit('work', 1, { queue: 'a' }), await client.submit('work', 2, { queue: 'b' })]
    client
      .worker({ queues: ['a', 'b'] })
      .handle('work', () => {})
      .start()
    await clock.advance(10_000)
    expect((await client.get(a.id)).status).toBe('pending')
    expect((await client.get(b.id)).status).toBe('completed')
  })
})

describe('a store that cannot be reached', () => {
  it('[N05][R02] is looked at again, with backoff, until it answers; then work goes on', async () => {
    const { lossy } = await import('../../../src/testing/lossy-store.ts')
    const { client, clock, another } = await begin()
    let away = true
    const looks: number[] = []
    const cut = await another({
      through: (store) =>
        lossy(store, (call) => {
          if (away && call !== 'now' && looks.at(-1) !== clock.mono()) looks.push(clock.mono())
          return away && call !== 'now' ? 'drop-request' : 'pass'
        }),
    })
    cut
      .worker()
      .handle('work', () => 'done')
      .start()
    const { id } = await client.submit('work', {})
    await clock.advance(60_000)
    const within = (from: number, to: number): number =>
      looks.filter((at) => at - looks[0]! >= from && at - looks[0]! < to).length
    // It goes on asking, less often than at first, and never lets more than the longest wait go by.
    expect(within(50_000, 60_000)).toBeGreaterThan(0)
    expect(within(0, 5_000)).toBeGreaterThan(2 * within(50_000, 55_000))
    expect(Math.max(...looks.slice(1).map((at, n) => at - looks[n]!))).toBeLessThan(6_000)
    away = false
    await clock.advance(10_000)
    expect((await client.get(id)).output).toBe('done')
  })
})
