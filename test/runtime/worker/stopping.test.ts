import { describe, expect, it } from 'vitest'
import type { Client, TaskContext } from '../../../src/index.ts'
import { lossy } from '../../../src/testing/lossy-store.ts'
import { begin, gate, movesOf, refuses, shown } from '../setup.ts'

describe('stopping a worker', () => {
  it('[N08] releases what was fetched but not begun, and no counter moves but attempts', async () => {
    const { client, clock } = await begin()
    const first = gate()
    const worker = client
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
    const stopped = worker.stop()
    await clock.settle()
    const released = await client.get(ahead.id)
    expect(shown(released)).toMatchObject({
      status: 'pending',
      retryCount: 0,
      rescheduleCount: 0,
      availableAt: ahead.availableAt,
      lease: null,
    })
    expect(released.history.at(-1)).toMatchObject({ move: 'release', to: 'pending' })
    expect((await client.get(running.id)).status, 'a running handler goes on').toBe('running')
    first.open()
    await stopped
    expect((await client.get(running.id)).status).toBe('completed')
  })

  it('gives running handlers stopTimeout, then aborts with shutdown; what then settles is released without a retry', async () => {
    const { client, clock } = await begin()
    let seen: TaskContext | undefined
    const worker = client
      .worker({ stopTimeout: '10s' })
      .handle('work', (_, ctx) => {
        seen = ctx
        return new Promise((_, reject) => ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason)))
      })
      .start()
    const { id } = await client.submit('work', {})
    await clock.settle()
    let isStopped = false
    void worker.stop().then(() => (isStopped = true))
    await clock.advance(9_999)
    expect(seen?.signal.aborted).toBe(false)
    expect(isStopped).toBe(false)
    await clock.advance(1)
    expect(seen?.signal.reason.kind).toBe('shutdown')
    expect(isStopped).toBe(true)
    const task = await client.get(id)
    expect(shown(task)).toMatchObject({ status: 'pending', retryCount: 0, lastError: null })
    expect(movesOf(task)).toEqual(['submit → pending', 'claim → running', 'release → pending'])
  })

  it('a handler that finishes its work in the time it is given is completed, also after the abort', async () => {
    const { client, clock } = await begin()
    const worker = client
      .worker({ stopTimeout: '1s' })
      .handle('work', (_, ctx) => new Promise((done) => ctx.signal.addEventListener('abort', () => done('saved'))))
      .start()
    const { id } = await client.submit('work', {})
    await clock.settle()
    const stopped = worker.stop()
    await clock.advance(1_000)
    await stopped
    expect((await client.get(id)).output).toBe('saved')
  })

  it('does not wait for ever for a handler that never settles: its lease lapses', async () => {
    const { client, clock, passing } = await begin({ random: () => 0 })
    const worker = client
      .worker({ stopTimeout: '1s' })
      .handle('work', () => new Promise(() => {}))
      .start()
    const { id } = await client.submit('work', {})
    await clock.settle()
    const start = clock.mono()
    await passing(worker.stop())
    expect(clock.mono() - start).toBeLessThan(5_000)
    expect((await client.get(id)).status).toBe('running')
    await clock.advance(6_000)
    const next = client
      .worker()
      .handle('work', () => 'done')
      .start()
    // One lease length of contact, because nobody has asked the store meanwhile.
    await clock.advance(6_000)
    expect(shown(await client.get(id))).toMatchObject({ status: 'completed', retryCount: 1 })
    await next.stop()
  })

  it('waits for what is still being written, also while one handler never settles', async () => {
    const { client, clock, another, passing } = await begin()
    let away = false
    const cut = await another({
      through: (store) => lossy(store, (call) => (away && call === 'commit' ? 'drop-request' : 'pass')),
    })
    const end = gate<string>()
    const worker = cut
      .worker({ stopTimeout: '1s' })
      .handle('stuck', () => new Promise(() => {}))
      .handle('work', () => end.opened)
      .start()
    await client.submit('stuck', {})
    const { id } = await client.submit('work', {})
    await clock.settle()
    away = true
    end.open('written in the end')
    const stopped = worker.stop()
    await clock.advance(4_000)
    away = false
    await passing(stopped)
    expect((await client.get(id)).output).toBe('written in the end')
  })

  it('claims nothing more', async () => {
    const { client, clock } = await begin()
    const worker = client
      .worker()
      .handle('work', () => {})
      .start()
    await worker.stop()
    const { id } = await client.submit('work', {})
    await clock.advance(60_000)
    expect((await client.get(id)).status).toBe('pending')
    expect(() => worker.start()).toThrow(/make a new one/)
  })

  it('a second stop with timeout 0 aborts at once', async () => {
    const { client, clock, passing } = await begin()
    let seen: TaskContext | undefined
    const worker = client
      .worker({ stopTimeout: '1h' })
      .handle('work', (_, ctx) => {
        seen = ctx
        return new Promise((_, reject) => ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason)))
      })
      .start()
    await client.submit('work', {})
    await clock.settle()
    const stopped = worker.stop()
    await clock.advance(1_000)
    void worker.stop({ timeout: 0 })
    await passing(stopped, 1)
    expect(seen?.signal.reason.kind).toBe('shutdown')
    expect(clock.mono()).toBeLessThan(2_000)
  })

  it('a second stop with timeout 0 does not wait for a handler that ignores its signal', async () => {
    const { client, clock, passing } = await begin()
    const worker = client
      .worker({ stopTimeout: '1h' })
      .handle('work', () => new Promise(() => {}))
      .start()
    await client.submit('work', {})
    await clock.settle()
    const stopped = worker.stop()
    await clock.advance(1_000)
    void worker.stop({ timeout: 0 })
    await passing(stopped)
    expect(clock.mono()).toBeLessThan(10_000)
  })

  it('run() resolves when the worker has stopped; hooks are told; what a hook throws changes nothing', async () => {
    const { client, clock } = await begin()
    const told: string[] = []
    const worker = client.worker({
      hooks: {
        onStart: () => void told.push('start'),
        onStop: () => void told.push('stop'),
        onTaskStart: ({ type }) => {
          told.push(`${type} starts`)
          throw new Error('a bad hook')
        },
        onTaskEnd: ({ type, status }, error) => void told.push(`${type} ${status} ${error}`),
      },
    })
    worker.handle('work', () => {})
    const ran = worker.run({ signals: false })
    await client.submit('work', {})
    await clock.settle()
    await worker.stop()
    await ran
    expect(told).toEqual(['start', 'work starts', 'work completed null', 'stop'])
  })

  it('a worker without handlers does not start', async () => {
    const { client } = await begin()
    expect(() => client.worker().start()).toThrow(expect.objectContaining({ code: 'NO_HANDLER' }))
    await refuses('NO_HANDLER')(client.worker().run({ signals: false }))
  })
})

describe('after close', () => {
  it('[U04] every call rejects with STORE_CLOSED', async () => {
    const { client, clock } = await begin()
    const { id } = await client.submit('work', {})
    await client.close()
    const closed = refuses('STORE_CLOSED')
    const calls: (() => Promise<unknown>)[] = [
      () => client.submit('work', {}),
      () => client.submitMany([{ type: 'work', input: 1 }]),
      () => client.get(id),
      () => client.getByIdempotencyKey('k'),
      () => client.history(id),
      () => client.list(),
      () => client.count(),
      () => client.stats(),
      () => client.wait(id),
      () => client.waitForEnd(id),
      () => client.cancel(id),
      () => client.cancelMany([id]),
      () => client.retry(id),
      () => client.markExpired(id),
      () => client.archive(id),
      () => client.unarchive(id),
      () => client.delete(id),
      () => client.prune({ olderThan: '1d' }),
      () => client.claim(id, { workerId: 'w' }),
      () => client.claimNext({ workerId: 'w' }),
      () => client.lease(id, { workerId: 'w' }),
      () => client.queue('q').pause(),
      () => client.queue('q').resume(),
      () => client.queue('q').isPaused(),
      () => client.now(),
    ]
    for (const call of calls) await closed(call())
    expect(() => client.worker()).toThrow(expect.objectContaining({ code: 'STORE_CLOSED' }))
    expect(clock.pendingTimers, 'no timer is left').toBe(0)
    await client.close()
  })

  it('close stops its workers and tells whoever waits', async () => {
    const { client, clock, passing } = await begin()
    client
      .worker()
      .handle('work', () => {})
      .start()
    const { id } = await client.submit('never', {})
    const waiting = client.wait(id)
    waiting.catch(() => {})
    await clock.advance(100)
    await passing(client.close())
    await refuses('STORE_CLOSED')(waiting)
    await clock.advance(10_000)
    expect(clock.pendingTimers).toBe(0)
  })

  it('a loop over events ends', async () => {
    const { client, clock } = await begin()
    const seen: string[] = []
    const looped = (async () => {
      for await (const { move } of client.events()) seen.push(move)
      return 'ended'
    })()
    await client.submit('work', {})
    await clock.settle()
    await client.close()
    await clock.settle()
    expect(await Promise.race([looped, clock.settle().then(() => 'still waiting')])).toBe('ended')
    expect(seen).toEqual(['submit'])
  })

  it('await using closes it', async () => {
    const { another } = await begin()
    let kept: Client
    {
      await using client = await another()
      kept = client
      await client.submit('work', {})
    }
    await refuses('STORE_CLOSED')(kept.submit('work', {}))
  })
})
