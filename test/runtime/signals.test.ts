/** `{ signal }` on the calls of a client: an aborted one rejects at once, and says whether a write was under way. */
import { describe, expect, it } from 'vitest'
import type { Client, TaskLease } from '../../src/index.ts'
import type { Store } from '../../src/store/store.ts'
import { begin } from './setup.ts'

type Call = (client: Client, id: string, signal: AbortSignal) => Promise<unknown>

const READS: Readonly<Record<string, Call>> = {
  now: (client, _, signal) => client.now({ signal }),
  get: (client, id, signal) => client.get(id, { signal }),
  getByIdempotencyKey: (client, _, signal) => client.getByIdempotencyKey('key', { signal }),
  history: (client, id, signal) => client.history(id, { signal }),
  list: (client, _, signal) => client.list({ limit: 1, signal }),
  count: (client, _, signal) => client.count({ status: 'pending' }, { signal }),
  why: (client, id, signal) => client.why(id, { signal }),
  workers: (client, _, signal) => client.workers({ signal }),
  examine: (client, _, signal) => client.examine({ signal }),
  stats: (client, _, signal) => client.stats({ signal }),
  wait: (client, id, signal) => client.wait(id, { signal }),
  waitForEnd: (client, id, signal) => client.waitForEnd(id, { signal }),
  lease: (client, id, signal) => client.lease(id, { token: 'x' }, { signal }),
  'schedules.list': (client, _, signal) => client.schedules.list({ signal }),
  'schedules.get': (client, _, signal) => client.schedules.get('tick', { signal }),
  'schedules.show': (client, _, signal) => client.schedules.show('tick', { signal }),
  'schedules.next': (client, _, signal) => client.schedules.next('tick', 2, { signal }),
}

const TICK = { id: 'tick', type: 'work', input: 1, every: '1h' } as const

const WRITES: Readonly<Record<string, Call>> = {
  submit: (client, _, signal) => client.submit('work', 1, { signal, priority: 1 }),
  submitMany: (client, _, signal) => client.submitMany([{ type: 'work', input: 1 }], { signal }),
  cancel: (client, id, signal) => client.cancel(id, { signal }),
  retry: (client, id, signal) => client.retry(id, { signal }),
  markExpired: (client, id, signal) => client.markExpired(id, { signal }),
  archive: (client, id, signal) => client.archive(id, { signal }),
  unarchive: (client, id, signal) => client.unarchive(id, { signal }),
  delete: (client, id, signal) => client.delete(id, { signal }),
  claim: (client, id, signal) => client.claim(id, { workerId: 'w', signal }),
  claimNext: (client, _, signal) => client.claimNext({ workerId: 'w', signal }),
  claimMany: (client, _, signal) => client.claimMany({ workerId: 'w', limit: 2, signal }),
  'schedules.create': (client, _, signal) => client.schedules.create(TICK, { signal }),
  'schedules.ensure': (client, _, signal) => client.schedules.ensure(TICK, { signal }),
  'schedules.update': (client, _, signal) => client.schedules.update('tick', { every: '2h' }, { signal }),
  'schedules.pause': (client, _, signal) => client.schedules.pause('tick', { signal }),
  'schedules.resume': (client, _, signal) => client.schedules.resume('tick', { signal }),
  'schedules.trigger': (client, _, signal) => client.schedules.trigger('tick', { signal }),
  'schedules.delete': (client, _, signal) => client.schedules.delete('tick', { signal }),
  'queue.pause': (client, _, signal) => client.queue('default').pause({ reason: 'x', signal }),
  'queue.resume': (client, _, signal) => client.queue('default').resume({ signal }),
}

type LeaseCall = (lease: TaskLease, signal: AbortSignal) => Promise<unknown>

const OF_A_LEASE: Readonly<Record<string, LeaseCall>> = {
  complete: (lease, signal) => lease.complete('done', { signal }),
  fail: (lease, signal) => lease.fail(new Error('no'), { signal }),
  reschedule: (lease, signal) => lease.reschedule('1s', { signal }),
  release: (lease, signal) => lease.release({ signal }),
  renew: (lease, signal) => lease.renew({ progress: 1, signal }),
}

/** A store of which some calls never come back. */
const hanging =
  (...names: readonly string[]) =>
  (store: Store): Store =>
    new Proxy(store, {
      get: (target, name) => {
        if (names.includes(String(name))) return () => new Promise(() => {})
        const value: unknown = Reflect.get(target, name)
        return typeof value === 'function' ? value.bind(target) : value
      },
    })

/** The same store as a plain object, to replace parts of it. */
const bound = (store: Store): Store => {
  const names = ['now', 'insert', 'claim', 'commit', 'renew', 'remove', 'get', 'find', 'list', 'count', 'wake', 'close']
  const calls = names.map((name) => [name, (Reflect.get(store, name) as () => unknown).bind(store)])
  const { capabilities, address, leaseTtl, claimsAtOnce, documents } = store
  return { ...Object.fromEntries(calls), capabilities, address, leaseTtl, claimsAtOnce, documents }
}

const REASON = new Error('the request is gone')
const abortedWith = (sent: boolean) => ({ name: 'HoldfastError', code: 'ABORTED', details: { sent }, cause: REASON })
const waiting = new Set(['wait', 'waitForEnd'])

describe.each(Object.entries({ ...READS, ...WRITES }))('[D15] %s', (name, call) => {
  it('with a signal that has aborted rejects before anything is sent', async () => {
    let calls = 0
    const { client } = await begin({
      through: (store) =>
        new Proxy(store, {
          get: (target, member) => {
            const value: unknown = Reflect.get(target, member)
            if (typeof value !== 'function') return value
            return (...args: unknown[]) => {
              calls++
              return Reflect.apply(value, target, args)
            }
          },
        }),
    })
    const { id } = await client.submit('work', 1)
    calls = 0
    const rejected = call(client, id, AbortSignal.abort(REASON))
    await expect(rejected).rejects.toMatchObject(waiting.has(name) ? { code: 'ABORTED' } : abortedWith(false))
    expect(calls).toBe(0)
    expect((await client.list()).tasks.map((task) => [task.id, task.status])).toEqual([[id, 'pending']])
  })
})

describe('a call whose store does not answer', () => {
  it.each(Object.entries(READS))(
    '%s rejects at once, and says that nothing was written',
    async (name, call) => {
      let isSilent = false
      const silent = <Part extends object>(part: Part): Part =>
        new Proxy(part, {
          get: (target, member) => {
            const value: unknown = Reflect.get(target, member)
            if (member === 'documents') return silent(value as object)
            if (typeof value !== 'function') return value
            return (...args: unknown[]) => (isSilent ? new Promise(() => {}) : Reflect.apply(value, target, args))
          },
        })
      const { client, another } = await begin()
      const { id } = await client.submit('work', 1)
      const slow = await another({ through: silent, vanishes: true })
      isSilent = true
      const stop = new AbortController()
      const rejected = call(slow, id, stop.signal)
      stop.abort(REASON)
      await expect(rejected).rejects.toMatchObject(waiting.has(name) ? { code: 'ABORTED' } : abortedWith(false))
    },
    5_000,
  )

  it('submit: a write that was sent is in doubt, one that was not is never sent', async () => {
    const { another, client, clock } = await begin()
    const slow = await another({ through: hanging('insert'), vanishes: true })
    const stop = new AbortController()
    const early = slow.submit('work', 1, { signal: stop.signal })
    stop.abort(REASON)
    await expect(early).rejects.toMatchObject(abortedWith(false))
    const late = new AbortController()
    const sent = slow.submit('work', 2, { signal: late.signal })
    sent.catch(() => {})
    await clock.advance(1)
    late.abort(REASON)
    await expect(sent).rejects.toMatchObject(abortedWith(true))
    await expect(sent).rejects.toThrow(/may or may not have taken effect/)
    expect((await client.list()).tasks).toEqual([])
  })

  it('claim: a lease that was sent for is in doubt', async () => {
    const { another, client, clock } = await begin()
    await client.submit('work', 1)
    const slow = await another({ through: hanging('claim'), vanishes: true })
    const stop = new AbortController()
    const claimed = slow.claimNext({ workerId: 'w', signal: stop.signal })
    claimed.catch(() => {})
    await clock.advance(1)
    stop.abort(REASON)
    await expect(claimed).rejects.toMatchObject({
      ...abortedWith(true),
      fix: expect.stringContaining('lapses by itself'),
    })
  })
})

describe.each(Object.entries(OF_A_LEASE))('%s of a lease', (name, call) => {
  const write = name === 'renew' ? 'renew' : 'commit'

  it('with a signal that has aborted rejects and changes nothing', async () => {
    const { client } = await begin()
    const { id } = await client.submit('work', 1)
    const lease = await client.claim(id, { workerId: 'w' })
    const before = await client.get(id)
    await expect(call(lease, AbortSignal.abort(REASON))).rejects.toMatchObject(abortedWith(false))
    expect((await client.get(id)).toJSON()).toEqual(before.toJSON())
  })

  it('whose write is not answered rejects at once, and says that it is in doubt', async () => {
    const { another, client, clock } = await begin()
    const { id } = await client.submit('work', 1)
    const slow = await another({ through: hanging(write), vanishes: true })
    const { token } = await client.claim(id, { workerId: 'w' })
    const lease = await slow.lease(id, { token: token! })
    const stop = new AbortController()
    const called = call(lease, stop.signal)
    called.catch(() => {})
    await clock.advance(1)
    stop.abort(REASON)
    await expect(called).rejects.toMatchObject(abortedWith(true))
  })

  it('with a signal that does not abort does what it does without one', async () => {
    const { client } = await begin()
    const { id } = await client.submit('work', 1)
    const lease = await client.claim(id, { workerId: 'w' })
    await call(lease, new AbortController().signal)
    const task = await client.get(id)
    expect([task.history.at(-1)!.move, task.progress]).toEqual(name === 'renew' ? ['claim', 1] : [name, null])
  })
})

it('the calls of schedules and queues do with a signal what they do without one', async () => {
  const { client } = await begin()
  const { signal } = new AbortController()
  await client.schedules.create(TICK, { signal })
  await client.schedules.ensure({ ...TICK, every: '3h' }, { signal })
  expect((await client.schedules.update('tick', { input: 2 }, { signal })).input).toBe(2)
  expect((await client.schedules.pause('tick', { signal })).paused).toBe(true)
  expect((await client.schedules.resume('tick', { signal })).paused).toBe(false)
  const task = await client.schedules.trigger('tick', { signal })
  expect((await client.get(task.id)).input).toBe(2)
  expect(await client.schedules.next('tick', 3, { signal })).toHaveLength(3)
  expect((await client.schedules.list({ signal })).map(({ id, every }) => [id, every])).toEqual([['tick', 10_800_000]])
  await client.schedules.delete('tick', { signal })
  expect(await client.schedules.list()).toEqual([])
  await client.queue('default').pause({ signal })
  expect(await client.claimNext({ workerId: 'w' }), 'this process sees the pause at once').toBeNull()
  await client.queue('default').resume({ signal })
  expect(await client.claimNext({ workerId: 'w' })).not.toBeNull()
})

it('a pause whose write is not answered is in doubt', async () => {
  const { another, clock } = await begin()
  const slow = await another({
    vanishes: true,
    through: (store) => ({ ...bound(store), documents: { ...store.documents, put: () => new Promise(() => {}) } }),
  })
  const stop = new AbortController()
  const paused = slow.queue('default').pause({ signal: stop.signal })
  paused.catch(() => {})
  await clock.advance(1)
  stop.abort(REASON)
  await expect(paused).rejects.toMatchObject(abortedWith(true))
})

it('a signal that aborts after its call has ended touches nothing: the lease goes on', async () => {
  const { client } = await begin()
  const stop = new AbortController()
  const { id } = await client.submit('work', 1, { signal: stop.signal })
  const lease = await client.claim(id, { workerId: 'w', signal: stop.signal })
  stop.abort()
  expect((await lease.complete('done')).status).toBe('completed')
})
