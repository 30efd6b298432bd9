import { describe, expect, it } from 'vitest'
import { HoldfastError, type TaskContext } from '../../../src/index.ts'
import type { Store } from '../../../src/store/store.ts'
import { type LossPlan, lossy } from '../../../src/testing/lossy-store.ts'
import { begin, gate, movesOf, shown } from '../setup.ts'

describe('a worker’s lease', () => {
  it('[F10][A15] is kept by a heartbeat every third of its length, which moves no revision', async () => {
    const { client, clock, store } = await begin()
    const end = gate()
    client
      .worker({ leaseTtl: '3s' })
      .handle('long', () => end.opened)
      .start()
    const { id } = await client.submit('long', {})
    await clock.settle()
    const ends: number[] = []
    const start = clock.wall()
    for (let i = 0; i < 5; i++) {
      const [task] = await store.get([id])
      ends.push(task!.lease!.expiresAt - start)
      expect(task!.revision).toBe(2)
      await clock.advance(1_000)
    }
    expect(ends).toEqual([3_000, 4_000, 5_000, 6_000, 7_000])
    end.open()
    await clock.settle()
    expect((await client.get(id)).lease).toBeNull()
  })

  it.each([
    ['5 s by default', {}, 5_000],
    ['as long as it is told', { leaseTtl: '1s' }, 1_000],
    ['as long as it is told', { leaseTtl: '30s' }, 30_000],
  ])(
    '[F09] is %s, from claim to expiry: a shorter one comes back sooner and costs more renewals',
    async (_, options, ttl) => {
      let [renewals, gone] = [0, false]
      const { client, clock, another, store } = await begin({ random: () => 0 })
      const plan: LossPlan = (call) => {
        if (call === 'renew' && !gone) renewals++
        return gone ? 'silence' : 'pass'
      }
      const dying = await another({ vanishes: true, through: (one) => lossy(one, plan) })
      dying
        .worker(options)
        .handle('long', () => new Promise(() => {}))
        .start()
      const { id } = await client.submit('long', {}, { maxRetries: 0, timeout: null })
      await clock.settle()
      const leaseOf = async () => (await store.get([id]))[0]!.lease!
      const { claimedAt, expiresAt, ttl: claimed } = await leaseOf()
      expect([expiresAt - claimedAt, claimed]).toEqual([ttl, ttl])
      await clock.advance(60_000)
      expect(renewals).toBeGreaterThanOrEqual(Math.floor(60_000 / (ttl / 3)) - 1)
      expect(renewals).toBeLessThanOrEqual(Math.ceil(60_000 / (ttl / 3)) + 1)
      gone = true
      client.monitor().start()
      const lapses = (await leaseOf()).expiresAt
      await clock.advance(lapses - clock.wall() - 1)
      expect((await client.get(id)).status, 'it stands to its last millisecond').toBe('running')
      await clock.advance(ttl + 4_000)
      expect((await client.get(id)).status).toBe('failed')
    },
  )

  it('by hand is 5 s long as well', async () => {
    const { client } = await begin()
    const { id } = await client.submit('x', {})
    const { task } = await client.claim(id, { workerId: 'w' })
    expect(task.lease!.expiresAt - task.lease!.claimedAt).toBe(5_000)
  })

  it('[F11][F12][C06][O02][O03][R01][Z04] of a worker that vanished lapses: another runs the task, under a higher fence', async () => {
    const { client, clock, another } = await begin({ random: () => 0 })
    let gone = false
    const plan: LossPlan = () => (gone ? 'silence' : 'pass')
    const dying = await another({ name: 'dying', vanishes: true, through: (store) => lossy(store, plan) })
    dying
      .worker({ id: 'dying' })
      .handle('work', () => new Promise(() => {}))
      .start()
    const { id } = await client.submit('work', {})
    await clock.settle()
    expect((await client.get(id)).lease?.workerId).toBe('dying')
    gone = true
    let fence = 0
    client
      .worker({ id: 'living' })
      .handle('work', (_, ctx) => {
        fence = ctx.fence
        return 'done'
      })
      .start()
    await clock.advance(4_000)
    expect((await client.get(id)).status, 'the lease still stands').toBe('running')
    await clock.advance(5_000 + 2_000 + 1_000 - 4_000)
    const task = await client.get(id)
    expect(shown(task)).toMatchObject({ status: 'completed', attempts: 2, retryCount: 1, output: 'done' })
    expect(task.lastError).toMatchObject({ name: 'LeaseExpired', message: 'lease expired' })
    expect(fence).toBe(2)
    expect(movesOf(task)).toEqual([
      'submit → pending',
      'claim → running',
      'lose-lease → pending',
      'claim → running',
      'complete → completed',
    ])
    gone = false
  })

  it('of a dead worker is taken in time although looks are refused now and then: a refusal is no loss of contact', async () => {
    const { client, clock, another } = await begin({ random: () => 0 })
    let gone = false
    const dying = await another({ vanishes: true, through: (one) => lossy(one, () => (gone ? 'silence' : 'pass')) })
    dying
      .worker({ id: 'dying' })
      .handle('work', () => new Promise(() => {}))
      .start()
    const { id } = await client.submit('work', {})
    await clock.settle()
    gone = true
    let looks = 0
    const refusing = (store: Store): Store =>
      new Proxy(store, {
        get(target, name) {
          const value: unknown = Reflect.get(target, name, target)
          if (name === 'claim' && ++looks % 2 === 0)
            return () => Promise.reject(new HoldfastError('INTERNAL', 'no message found'))
          return typeof value === 'function' ? value.bind(target) : value
        },
      })
    const living = await another({ name: 'living', through: refusing })
    living
      .worker({ id: 'living', pollInterval: '500ms' })
      .handle('work', () => 'done')
      .start()
    await clock.advance(5_000 + 2_000)
    expect(looks).toBeGreaterThan(10)
    expect(shown(await client.get(id))).toMatchObject({ status: 'completed', retryCount: 1 })
    gone = false
  })

  it('[F08][R06][Y02][O04] that was taken over: the signal aborts, the result is refused as stale, the hook is told', async () => {
    const { client, clock, another } = await begin({ random: () => 0 })
    let away = false
    const ended: (string | null)[] = []
    const cut = await another({ name: 'cut', through: (store) => lossy(store, () => (away ? 'drop-request' : 'pass')) })
    const end = gate<string>()
    let seen: TaskContext | undefined
    cut
      .worker({ id: 'cut', hooks: { onTaskEnd: (_, error: HoldfastError | null) => ended.push(error?.code ?? null) } })
      .handle('work', (_, ctx) => {
        seen = ctx
        return end.opened
      })
      .start()
    const { id } = await client.submit('work', {})
    await clock.settle()
    expect(seen?.signal.aborted).toBe(false)
    away = true
    client
      .worker({ id: 'other' })
      .handle('work', () => 'by the other')
      .start()
    await clock.advance(8_000)
    expect(seen?.signal.reason.kind).toBe('lease-lost')
    const { revision } = await client.get(id)
    away = false
    end.open('too late')
    await clock.advance(1_000)
    expect(ended).toEqual(['STALE_LEASE'])
    expect(shown(await client.get(id))).toMatchObject({ status: 'completed', output: 'by the other', revision })
  })

  it('[R03] aborts the handler by its own deadline when contact is lost, before anybody else has the task', async () => {
    const { clock, another, client } = await begin()
    let away = false
    const cut = await another({ name: 'cut', through: (store) => lossy(store, () => (away ? 'drop-request' : 'pass')) })
    let seen: TaskContext | undefined
    let abortedAt = 0
    cut
      .worker()
      .handle('work', (_, ctx) => {
        seen = ctx
        ctx.signal.addEventListener('abort', () => (abortedAt = clock.mono()))
        return new Promise(() => {})
      })
      .start()
    await client.submit('work', {})
    await clock.settle()
    away = true
    await clock.advance(10_000)
    expect(seen?.signal.reason.kind).toBe('lease-lost')
    expect(abortedAt).toBeLessThanOrEqual(5_000 + 5_000 / 3)
    away = false
  })

  it('complete succeeds after the lease’s end if nobody took it', async () => {
    const { client, clock } = await begin()
    const { id } = await client.submit('work', {})
    const lease = await client.claim(id, { workerId: 'w' })
    await clock.advance(60_000)
    expect(await lease.renew()).toEqual({ cancelRequested: false })
    await clock.advance(60_000)
    expect(await lease.complete('late but mine')).toMatchObject({ status: 'completed', output: 'late but mine' })
  })

  it('a fetched-ahead task whose lease went stale in an outage is given back, not kept for ever', async () => {
    const { clock, another, client } = await begin()
    let away = false
    const cut = await another({ name: 'cut', through: (store) => lossy(store, () => (away ? 'drop-request' : 'pass')) })
    const first = gate()
    const ran: unknown[] = []
    cut
      .worker({ concurrency: 1 })
      .handle('work', async (input) => {
        ran.push(input)
        if (input === 'first') await first.opened
      })
      .start()
    for (let i = 0; i < 20; i++) await client.submit('work', 'warm')
    await clock.settle()
    await client.submit('work', 'first', { timeout: null })
    const { id } = await client.submit('work', 'ahead')
    await clock.settle()
    expect((await client.get(id)).status).toBe('running')
    away = true
    await clock.advance(8_000)
    away = false
    first.open()
    await clock.advance(60_000)
    expect(shown(await client.get(id))).toMatchObject({ status: 'completed' })
    expect(ran.filter((input) => input === 'ahead')).toHaveLength(1)
  })

  it('of others is not taken until one of its lengths after an outage', async () => {
    const { clock, client, another, store } = await begin({ random: () => 0 })
    let away = false
    const cut = await another({ name: 'cut', through: (one) => lossy(one, () => (away ? 'drop-request' : 'pass')) })
    const { id } = await client.submit('work', {})
    await client.claim(id, { workerId: 'by hand', leaseTtl: '20s' })
    cut
      .worker({ leaseTtl: '5s' })
      .handle('work', () => 'taken')
      .start()
    await clock.advance(1_000)
    away = true
    await clock.advance(20_000)
    away = false
    await clock.advance(19_000)
    expect((await store.get([id]))[0]!.status, 'its holder may come back first').toBe('running')
    await clock.advance(8_000)
    expect(shown(await client.get(id))).toMatchObject({ status: 'completed', output: 'taken' })
  })

  it('[S02][F15] must be at least twice as long as the store’s clock is uncertain, and not absurdly short', async () => {
    const { client } = await begin()
    expect(() => client.worker({ leaseTtl: '50ms' })).toThrow(expect.objectContaining({ code: 'INVALID_OPTION' }))
    const { another } = await begin()
    const foggy = await another({
      through: (store) =>
        new Proxy(store, {
          get: (target, name) =>
            name === 'now'
              ? async () => ({ at: 1_800_000_000_000, uncertainty: 400 })
              : name === 'capabilities'
                ? new Set()
                : Reflect.get(target, name, target),
        }),
    })
    expect(() => foggy.worker({ leaseTtl: '700ms' })).toThrow(/twice/)
  })
})
