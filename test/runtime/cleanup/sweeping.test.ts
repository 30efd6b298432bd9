/** Lapsed leases, expiry, schedules and retention do not depend on who serves a queue. */
import { describe, expect, it } from 'vitest'
import type { Client } from '../../../src/index.ts'
import { begin } from '../setup.ts'

/** A task that expires in 5 s and one whose worker is gone, in the queue `idle`. */
const overdue = async (client: Client): Promise<{ expiring: string; lost: string }> => {
  const lost = await client.submit('work', 1, { queue: 'idle', maxRetries: 0 })
  await client.claim(lost.id, { workerId: 'gone' })
  const expiring = await client.submit('work', 1, { queue: 'idle', ttl: '5s' })
  return { expiring: expiring.id, lost: lost.id }
}

const statuses = async (client: Client, ids: { expiring: string; lost: string }): Promise<readonly string[]> => [
  (await client.get(ids.expiring)).status,
  (await client.get(ids.lost)).status,
]

describe('what is overdue', () => {
  it('in a paused queue is moved by a worker that serves only that queue', async () => {
    const { client, clock } = await begin()
    const ids = await overdue(client)
    await client.queue('idle').pause()
    client
      .worker({ queues: ['idle'] })
      .handle('work', () => null)
      .start()
    await clock.advance(15_000)
    expect(await statuses(client, ids)).toEqual(['expired', 'failed'])
  })

  it('in a queue that nobody serves is moved by a worker of another queue', async () => {
    const { client, clock } = await begin()
    const ids = await overdue(client)
    client
      .worker({ queues: ['other'] })
      .handle('work', () => null)
      .start()
    await clock.advance(15_000)
    expect(await statuses(client, ids)).toEqual(['expired', 'failed'])
  })

  it('[O01] is moved by a monitor alone: what expired before it was claimed, and what runs past its timeout although it is renewed', async () => {
    const { client, clock } = await begin({ random: () => 0 })
    const pending = await client.submit('work', 1, { ttl: '5s' })
    const slow = await client.submit('work', 1, { queue: 'idle', timeout: '20s', maxRetries: 0 })
    const lease = await client.claim(slow.id, { workerId: 'hangs' })
    client.monitor().start()
    const renewed: boolean[] = []
    for (let passed = 0; passed < 40_000; passed += 1_000) {
      await clock.advance(1_000)
      renewed.push(
        await lease.renew().then(
          () => true,
          () => false,
        ),
      )
    }
    expect((await client.get(pending.id)).status).toBe('expired')
    const ended = await client.get(slow.id)
    expect(ended).toMatchObject({ status: 'failed', lastError: { message: 'timed out after 20s' } })
    expect(ended.history.at(-1)).toMatchObject({ move: 'time-out', to: 'failed' })
    // The timeout and one lease: until then it is the holder's.
    expect(renewed.indexOf(false)).toBeGreaterThanOrEqual(24)
    expect(renewed.indexOf(false)).toBeLessThanOrEqual(28)
  })

  it('is moved by a monitor, which runs nothing', async () => {
    const { client, clock } = await begin()
    const ids = await overdue(client)
    client.monitor().start()
    await clock.advance(15_000)
    expect(await statuses(client, ids)).toEqual(['expired', 'failed'])
  })

  /** Reports what is overdue only in the queue that is looked at. */
  const queueByQueue = async () => {
    let looks = 0
    const scene = await begin({
      through: (store) =>
        new Proxy(store, {
          get: (target, name) => {
            if (name === 'capabilities') return new Set([...store.capabilities].filter((one) => !one.startsWith('due')))
            if (name !== 'claim') return Reflect.get(target, name, target)
            return async (want: Parameters<typeof store.claim>[0]) => {
              const found = await store.claim(want)
              if (want.queue === 'idle') looks++
              return { ...found, due: found.due.filter(({ queue }) => queue === want.queue) }
            }
          },
        }),
    })
    return { ...scene, looks: () => looks }
  }

  it('is moved within a minute by one process on a store that must be looked at queue by queue', async () => {
    const { client, clock, looks } = await queueByQueue()
    const ids = await overdue(client)
    for (const queue of ['a', 'b', 'c'])
      client
        .worker({ queues: [queue] })
        .handle('work', () => null)
        .start()
    await clock.advance(70_000)
    expect(await statuses(client, ids)).toEqual(['expired', 'failed'])
    // Of three workers one looks, once a minute.
    expect(looks()).toBeLessThanOrEqual(4)
  })

  it('is moved as soon there in a queue that was first used after the worker had started', async () => {
    const { client, clock } = await queueByQueue()
    client
      .worker({ queues: ['a'] })
      .handle('work', () => null)
      .start()
    await clock.advance(10_000)
    const ids = await overdue(client)
    await clock.advance(80_000)
    expect(await statuses(client, ids)).toEqual(['expired', 'failed'])
  })
})

describe('a monitor', () => {
  it('fires schedules', async () => {
    const { client, clock } = await begin()
    await client.schedules.create({ id: 'tick', type: 'work', input: 1, every: '10s' })
    client.monitor().start()
    await clock.advance(11_000)
    expect((await client.list({ type: 'work' })).tasks).toHaveLength(1)
  })

  it('applies the retention of the store, and stops when it is told to', async () => {
    const { client, clock } = await begin()
    const { id } = await client.submit('work', 1)
    await client.cancel(id)
    await client.retention.set({ cancelled: '1h' })
    const monitor = client.monitor().start()
    await clock.advance(61 * 60_000)
    await expect(client.get(id)).rejects.toMatchObject({ code: 'TASK_NOT_FOUND' })
    await monitor.stop()
    const other = await client.submit('work', 1)
    await client.cancel(other.id)
    await clock.advance(3 * 3_600_000)
    expect((await client.get(other.id)).status).toBe('cancelled')
  })

  it('keeps the shorter of its own retention and that of the store', async () => {
    const { client, clock, another } = await begin()
    const own = await another({ retention: { cancelled: '2h', failed: '1h' } })
    await client.retention.set({ cancelled: '1h', failed: '5h' })
    const cancelled = await client.submit('work', 1)
    await client.cancel(cancelled.id)
    const failed = await client.submit('work', 1, { maxRetries: 0 })
    await (await client.claim(failed.id, { workerId: 'w' })).fail(new Error('no'))
    own.monitor().start()
    await clock.advance(62 * 60_000)
    expect((await client.list({ status: ['cancelled', 'failed'] })).tasks).toEqual([])
    await expect(client.retention.set({ pending: '1h' } as never)).rejects.toMatchObject({ code: 'INVALID_OPTION' })
  })
})
