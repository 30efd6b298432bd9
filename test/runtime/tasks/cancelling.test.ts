import { describe, expect, it } from 'vitest'
import type { TaskContext } from '../../../src/index.ts'
import type { Store } from '../../../src/store/store.ts'
import { begin, gate, refuses, shown } from '../setup.ts'

describe('cancelling', () => {
  it('[K01][C12] a pending task is cancelled, and cancelling it again is a success', async () => {
    const { client, clock } = await begin()
    const { id } = await client.submit('email', {})
    const cancelled = await client.cancel(id, { reason: 'not wanted' })
    expect(shown(cancelled)).toMatchObject({ status: 'cancelled', completedAt: clock.wall() })
    expect(cancelled.history.at(-1)).toMatchObject({ move: 'cancel', to: 'cancelled', reason: 'not wanted' })
    const { revision } = await client.cancel(id)
    expect(revision).toBe(cancelled.revision)
    let runs = 0
    client
      .worker()
      .handle('email', () => void runs++)
      .start()
    await clock.advance(60_000)
    expect(runs, '[K02] at least once, unless cancelled').toBe(0)
  })

  it('a running task is asked to stop: its signal aborts within one heartbeat, and any end but success is cancelled', async () => {
    const { client, clock, another } = await begin()
    let seen: TaskContext | undefined
    client
      .worker({ leaseTtl: '3s' })
      .handle('long', (_, ctx) => {
        seen = ctx
        return new Promise((_, reject) => ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason)))
      })
      .start()
    const { id } = await client.submit('long', {})
    await clock.advance(500)
    const asked = await (await another()).cancel(id)
    expect(shown(asked)).toMatchObject({ status: 'running', cancelRequestedAt: clock.wall() })
    await clock.advance(1_000)
    expect(seen?.signal.reason.kind).toBe('cancelled')
    const task = await client.get(id)
    expect(shown(task)).toMatchObject({ status: 'cancelled', retryCount: 0, lease: null })
    expect(task.lastError?.message).toBe('aborted: cancelled')
  })

  it('a running task that completes in spite of it is completed', async () => {
    const { client, clock } = await begin()
    const end = gate<string>()
    client
      .worker()
      .handle('long', () => end.opened)
      .start()
    const { id } = await client.submit('long', {})
    await clock.settle()
    await client.cancel(id)
    await clock.advance(5_000)
    end.open('done anyway')
    await clock.settle()
    expect(shown(await client.get(id))).toMatchObject({ status: 'completed', output: 'done anyway' })
  })

  it('a running task that reschedules after it is cancelled', async () => {
    const { client, clock } = await begin()
    const end = gate()
    client
      .worker()
      .handle('long', async (_, ctx) => {
        await end.opened
        return ctx.reschedule('1m')
      })
      .start()
    const { id } = await client.submit('long', {})
    await clock.settle()
    await client.cancel(id)
    end.open()
    await clock.settle()
    expect(shown(await client.get(id))).toMatchObject({ status: 'cancelled', rescheduleCount: 0 })
  })

  it('a task that was fetched but not begun is cancelled without its handler being called', async () => {
    const { client, clock } = await begin()
    const first = gate()
    const ran: unknown[] = []
    client
      .worker({ concurrency: 1, leaseTtl: '3s' })
      .handle('one', async (input) => {
        ran.push(input)
        if (input === 'warm') return
        await first.opened
      })
      .start()
    // Tasks started lately allow fetching ahead.
    for (let i = 0; i < 20; i++) await client.submit('one', 'warm')
    await clock.settle()
    await client.submit('one', 'first')
    const { id } = await client.submit('one', 'ahead')
    await clock.settle()
    expect(shown(await client.get(id)), 'it is held, waiting for its turn').toMatchObject({ status: 'running' })
    await client.cancel(id)
    await clock.advance(3_000)
    first.open()
    await clock.settle()
    expect(shown(await client.get(id))).toMatchObject({ status: 'cancelled' })
    expect(ran).not.toContain('ahead')
  })

  it('[C13] a cancelled task can be retried, without using up a retry', async () => {
    const { client, clock } = await begin()
    const { id } = await client.submit('email', {}, { maxRetries: 0 })
    await client.cancel(id)
    expect(shown(await client.retry(id))).toMatchObject({ status: 'pending', retryCount: 0, completedAt: null })
    client
      .worker()
      .handle('email', () => 'sent')
      .start()
    await clock.settle()
    expect((await client.get(id)).output).toBe('sent')
  })

  it('cancelMany takes ids or a query, with a result for each', async () => {
    const { client } = await begin()
    const done = await client.submit('a', 1)
    await (await client.claim(done.id, { workerId: 'w' })).complete()
    const [one, two] = [await client.submit('a', 2), await client.submit('b', 3)]
    const results = await client.cancelMany([done.id, one.id])
    expect(results).toMatchObject([
      { id: done.id, error: { code: 'CANNOT_CANCEL' } },
      { id: one.id, task: { status: 'cancelled' } },
    ])
    expect(await client.cancelMany({ type: 'b' })).toMatchObject([{ id: two.id, task: { status: 'cancelled' } }])
    await refuses('TASK_NOT_FOUND')(client.cancel('01900000-0000-7000-8000-000000000000'))
  })

  it('cancelMany by a query also asks what runs to stop, and leaves what has ended alone', async () => {
    const { client } = await begin()
    const [waits, runs, done] = [
      await client.submit('a', 1),
      await client.submit('a', 2),
      await client.submit('a', 3, { priority: 1 }),
    ]
    await (await client.claim(done.id, { workerId: 'w' })).complete()
    const lease = await client.claim(runs.id, { workerId: 'w' })
    const results = await client.cancelMany({ type: 'a' })
    expect(results.map(({ id }) => id).sort()).toEqual([waits.id, runs.id].sort())
    expect((await client.get(runs.id)).cancelRequestedAt).not.toBeNull()
    expect(await lease.renew()).toEqual({ cancelRequested: true })
    expect((await client.get(done.id)).status).toBe('completed')
  })

  it('cancelMany of many goes batch by batch, each told once, and stops between two when it is asked to', async () => {
    const calls: number[] = []
    const { client } = await begin({
      through: (store) =>
        new Proxy(store, {
          get(target, name) {
            if (name === 'commit')
              return (changes: Parameters<Store['commit']>[0]) => {
                calls.push(changes.length)
                return target.commit(changes)
              }
            const value: unknown = Reflect.get(target, name, target)
            return typeof value === 'function' ? value.bind(target) : value
          },
        }),
    })
    await client.submitMany(Array.from({ length: 1_200 }, (_, n) => ({ type: 'a', input: n })))
    const told: string[] = []
    client.onMove(({ task }) => told.push(task.id))
    const progress: number[] = []
    const stop = new AbortController()
    const first = await client.cancelMany(
      { type: 'a' },
      {
        signal: stop.signal,
        onProgress: (done) => {
          progress.push(done)
          stop.abort()
        },
      },
    )
    expect(first).toHaveLength(500)
    const second = await client.cancelMany(
      { type: 'a' },
      { reason: 'ordered twice', onProgress: (done) => progress.push(done) },
    )
    expect(second).toHaveLength(700)
    expect(calls).toEqual([500, 500, 200])
    expect(progress).toEqual([500, 500, 700])
    expect(new Set(told).size).toBe(1_200)
    expect(told).toHaveLength(1_200)
    const { tasks } = await client.list({ status: 'cancelled', limit: 1 })
    expect(tasks).toHaveLength(1)
    expect((await client.history(second[0]!.id)).at(-1)).toMatchObject({ move: 'cancel', reason: 'ordered twice' })
    expect(await client.count({ status: 'cancelled' })).toMatchObject({ count: 1_200 })
  })

  it('cancelMany decides anew about a task that moved since it was chosen, and tells what is no id', async () => {
    let lease: (() => Promise<unknown>) | null = null
    const { client } = await begin({
      through: (store) =>
        new Proxy(store, {
          get(target, name) {
            if (name === 'commit')
              return async (changes: Parameters<Store['commit']>[0]) => {
                const claimFirst = lease
                lease = null
                await claimFirst?.()
                return target.commit(changes)
              }
            const value: unknown = Reflect.get(target, name, target)
            return typeof value === 'function' ? value.bind(target) : value
          },
        }),
    })
    const { id } = await client.submit('a', 1)
    lease = () => client.claim(id, { workerId: 'w' })
    const results = await client.cancelMany([id, 'abc', '01900000-0000-7000-8000-000000000000', id])
    expect(results).toMatchObject([
      { id, task: { status: 'running', cancelRequestedAt: expect.any(Number) } },
      { id: 'abc', error: { code: 'INVALID_TASK' } },
      { error: { code: 'TASK_NOT_FOUND' } },
    ])
  })
})
