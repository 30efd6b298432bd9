/** Workers that say that they are there, and what follows when they do not. */
import { describe, expect, it } from 'vitest'
import type { Store } from '../../../src/store/store.ts'
import { lossy } from '../../../src/testing/lossy-store.ts'
import { begin, passing, refuses } from '../setup.ts'

const bound = (documents: Store['documents']): Store['documents'] => ({
  get: (name) => documents.get(name),
  put: (...args) => documents.put(...args),
  list: (prefix) => documents.list(prefix),
  delete: (...args) => documents.delete(...args),
})

describe('a worker', () => {
  it('is listed from its start to its stop, with what it does', async () => {
    const { client, clock, another } = await begin()
    const other = await another()
    const worker = client
      .worker({ id: 'w1', concurrency: 3, queues: ['mail', 'default'] })
      .handle('b', () => {})
      .handle('a', () => {})
      .start()
    const startedAt = clock.wall()
    await clock.settle()
    expect(await other.workers()).toEqual([
      {
        id: 'w1',
        stuck: { count: 0, tasks: [] },
        claiming: true,
        types: ['b', 'a'],
        queues: ['mail', 'default'],
        concurrency: 3,
        version: expect.stringMatching(/^\d+\.\d+\.\d+/),
        host: expect.any(String),
        pid: process.pid,
        startedAt,
        beatAt: startedAt,
      },
    ])
    await clock.advance(25_000)
    expect(await other.workers()).toMatchObject([{ id: 'w1', startedAt, beatAt: startedAt + 20_000 }])
    await worker.stop()
    expect(await other.workers()).toEqual([])
  })

  it('costs one write of a document in ten seconds', async () => {
    const puts: number[] = []
    const counting = (store: Store): Store =>
      lossy(store, (call) => {
        if (call === 'documents.put') puts.push(1)
        return 'pass'
      })
    const { client, clock } = await begin({ through: counting })
    client
      .worker()
      .handle('a', () => {})
      .start()
    await clock.advance(100_500)
    expect(puts).toHaveLength(11)
  })

  it('that vanished counts as gone after 30 s, and another one sweeps what it left', async () => {
    const { client, clock, another, store } = await begin()
    const vanishing = await another({
      vanishes: true,
      through: (inner) => lossy(inner, () => (clock.mono() > 15_000 ? 'silence' : 'pass')),
    })
    vanishing
      .worker({ id: 'vanished' })
      .handle('a', () => {})
      .start()
    client
      .worker({ id: 'alive' })
      .handle('a', () => {})
      .start()
    await clock.advance(40_000)
    expect((await client.workers()).map(({ id }) => id)).toEqual(['alive', 'vanished'])
    await clock.advance(1_000)
    expect((await client.workers()).map(({ id }) => id)).toEqual(['alive'])
    await clock.advance(60_000)
    expect((await store.documents.list('worker/')).map(({ name }) => name)).toEqual(['worker/alive'])
  })

  it('that was swept while it stood still is listed again with its next beat', async () => {
    const { client, clock, store } = await begin()
    client
      .worker({ id: 'w1' })
      .handle('a', () => {})
      .start()
    await clock.settle()
    const document = await store.documents.get('worker/w1')
    await store.documents.delete('worker/w1', document!.version)
    await clock.advance(10_000)
    expect(await client.workers()).toMatchObject([{ id: 'w1' }])
  })

  it('works, and stops, though it cannot tell that it is there', async () => {
    const { client, clock, another } = await begin()
    const mute = await another({
      through: (inner) => lossy(inner, (call) => (call.startsWith('documents.put') ? 'silence' : 'pass')),
    })
    const { id } = await client.submit('a', 1)
    const worker = mute
      .worker()
      .handle('a', () => 'done')
      .start()
    await clock.settle()
    expect((await client.get(id)).status).toBe('completed')
    await passing(clock, worker.stop())
    expect(await client.workers()).toEqual([])
  })

  it('does not trip over documents that others wrote', async () => {
    const { client, store } = await begin()
    await store.documents.put('worker/odd', 'not JSON', 0)
    await store.documents.put('worker/older', '{}', 0)
    expect(await client.workers()).toEqual([])
  })
})

describe('a pause', () => {
  it('holds from the first look on, also where a worker looks several times at once', async () => {
    const { client, clock, another } = await begin()
    await client.queue('mail').pause()
    const { id } = await client.submit('a', 1, { queue: 'mail' })
    const slowly = await another({
      through: (store) =>
        new Proxy(store, {
          get(target, name) {
            if (name === 'claimsAtOnce') return 3
            if (name !== 'documents') return Reflect.get(target, name)
            const list = async (prefix: string) => {
              if (prefix === 'pause/') await new Promise<void>((done) => void clock.after(200, done))
              return target.documents.list(prefix)
            }
            return { ...bound(target.documents), list }
          },
        }),
    })
    slowly
      .worker({ queues: ['mail'] })
      .handle('a', () => {})
      .start()
    await clock.advance(60_000)
    expect((await client.get(id)).attempts).toBe(0)
    await client.queue('mail').resume()
    await clock.advance(5_000)
    expect((await client.get(id)).status).toBe('completed')
  })
})

describe('why', () => {
  it('tells that no live worker handles the type, until one does', async () => {
    const { client, clock } = await begin()
    const { id } = await client.submit('mail', {}, { queue: 'post' })
    expect(await client.why(id)).toMatchObject({
      reason: 'no-worker',
      sentence: expect.stringContaining('no live worker is registered'),
      queueReady: { count: 1 },
      workers: [],
    })
    const elsewhere = client
      .worker({ queues: ['default'] })
      .handle('mail', () => {})
      .start()
    await clock.settle()
    expect((await client.why(id)).sentence).toContain("no live worker that handles 'mail' serves queue 'post'")
    await elsewhere.stop()
    await client.queue('post').pause()
    client
      .worker({ queues: ['post'] })
      .handle('mail', () => {})
      .start()
    await clock.settle()
    expect(await client.why(id)).toMatchObject({ reason: 'queue-paused', queuePaused: true, workers: [{}] })
    await refuses('TASK_NOT_FOUND')(client.why('01900000-0000-7000-8000-000000000000'))
  })
})

describe('a worker elsewhere, for which a server speaks', () => {
  const remote = { queues: ['default'], types: ['a'], concurrency: 1, host: 'there' }

  it('is alive while it renews leases, although a long run lets it claim nothing', async () => {
    const { client, clock } = await begin()
    await client.heardOfWorker('py-1', remote)
    for (let passed = 0; passed < 300_000; passed += 10_000) {
      await clock.advance(10_000)
      await client.heardOfWorker('py-1')
    }
    expect(await client.workers()).toMatchObject([{ id: 'py-1', types: ['a'], via: 'http' }])
    await clock.advance(31_000)
    expect(await client.workers()).toEqual([])
  })

  it('with long leases is alive between two renewals, and gone one lease after the last', async () => {
    const { client, clock } = await begin()
    await client.heardOfWorker('py-1', { ...remote, leaseTtl: 600_000 })
    for (let renewals = 0; renewals < 3; renewals++) {
      await clock.advance(200_000)
      expect((await client.workers()).map(({ id }) => id)).toEqual(['py-1'])
      await client.heardOfWorker('py-1', { leaseTtl: 600_000 })
    }
    // Then it claims under short leases again.
    await client.heardOfWorker('py-1', { ...remote, leaseTtl: undefined })
    await clock.advance(31_000)
    expect(await client.workers()).toEqual([])
    await client.heardOfWorker('py-2', { ...remote, leaseTtl: 600_000 })
    await clock.advance(601_000)
    expect(await client.workers()).toEqual([])
  })

  it('is not known by a renewal alone: what it serves was never told', async () => {
    const { client } = await begin()
    await client.heardOfWorker('py-1')
    expect(await client.workers()).toEqual([])
  })

  it('leaves no document behind for good, also where no worker of this process sweeps them', async () => {
    const { client, clock, store } = await begin()
    for (let n = 0; n < 50; n++) {
      await client.heardOfWorker(`py-${n}`, remote)
      await clock.advance(30_000)
    }
    expect((await store.documents.list('worker/')).length).toBeLessThan(6)
  })
})
