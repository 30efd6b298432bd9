import { describe, expect, it } from 'vitest'
import { type MoveEvent, RescheduleError } from '../../../src/index.ts'
import { begin, gate, refuses } from '../setup.ts'

describe('waiting for a task', () => {
  it('[G03][N02][A22] gives the output when it completes, also when that was before', async () => {
    const { client, passing } = await begin()
    client
      .worker()
      .handle('sum', (input) => (input as number[]).reduce((a, b) => a + b, 0))
      .start()
    const task = await client.submit('sum', [1, 2, 3])
    expect(await passing(client.wait(task))).toBe(6)
    expect(await passing(client.wait(task.id))).toBe(6)
    expect((await client.get(task.id)).output).toBe(6)
  })

  it('a handler that returns nothing gives null', async () => {
    const { client, passing } = await begin()
    client
      .worker()
      .handle('quiet', () => {})
      .start()
    expect(await passing(client.wait(await client.submit('quiet', {})))).toBeNull()
  })

  it('rejects with how it ended otherwise', async () => {
    const { client, passing } = await begin()
    client
      .worker()
      .handle('bad', () => {
        throw new Error('out of paper')
      })
      .start()
    const failed = await client.submit('bad', {}, { maxRetries: 0 })
    await refuses('TASK_FAILED', 'out of paper')(passing(client.wait(failed)))
    const cancelled = await client.submit('other', {})
    await client.cancel(cancelled.id)
    await refuses('TASK_CANCELLED')(passing(client.wait(cancelled)))
    const expired = await client.submit('other', {}, { ttl: 0 })
    await refuses('TASK_EXPIRED')(passing(client.wait(expired)))
    await client.archive(expired.id)
    await refuses('TASK_EXPIRED')(passing(client.wait(expired)))
    expect(await passing(client.waitForEnd(expired))).toMatchObject({ id: expired.id })
    await refuses('TASK_NOT_FOUND')(passing(client.wait('01900000-0000-7000-8000-000000000000')))
  })

  it('gives up after its timeout while the task goes on; or when the signal aborts', async () => {
    const { client, clock, passing } = await begin()
    const end = gate<string>()
    client
      .worker()
      .handle('long', () => end.opened)
      .start()
    const task = await client.submit('long', {})
    const start = clock.mono()
    await refuses('WAIT_TIMEOUT')(passing(client.wait(task, { timeout: '10s' }), 100))
    expect(clock.mono() - start).toBeLessThanOrEqual(10_200)
    const controller = new AbortController()
    const waiting = client.wait(task, { signal: controller.signal })
    await clock.advance(1_000)
    controller.abort()
    await refuses('ABORTED')(waiting)
    await refuses('ABORTED')(client.wait(task, { signal: AbortSignal.abort() }))
    end.open('done')
    expect(await passing(client.wait(task))).toBe('done')
  })

  it('sees tasks that another process ends', async () => {
    const { client, clock, another, passing } = await begin()
    const task = await client.submit('work', {})
    const waiting = client.wait(task)
    await clock.advance(5_000)
    const other = await another({ name: 'other' })
    await (await other.claim(task.id, { workerId: 'w' })).complete('elsewhere')
    const start = clock.mono()
    expect(await passing(waiting, 10)).toBe('elsewhere')
    expect(clock.mono() - start).toBeLessThanOrEqual(510)
  })

  it('outlives a reply that is lost now and then; a store that stays away is an error', async () => {
    const { lossy } = await import('../../../src/testing/lossy-store.ts')
    let n = 0
    let away = false
    const { client, passing } = await begin({
      through: (store) => lossy(store, (call) => (call === 'get' && (away || n++ % 2 === 0) ? 'lose-reply' : 'pass')),
    })
    const task = await client.submit('work', {})
    const waiting = passing(client.wait(task))
    await (await client.claimNext({ workerId: 'w' }))?.complete('done')
    expect(await waiting).toBe('done')
    away = true
    await refuses('STORE_UNAVAILABLE')(passing(client.wait(task)))
  })

  it('any number may wait for one task, and nothing is left behind', async () => {
    const { client, clock, passing } = await begin()
    const task = await client.submit('work', {})
    const lease = await client.claim(task.id, { workerId: 'w' })
    // That of a process that claims by hand: it notices suspensions.
    expect(clock.pendingTimers).toBe(1)
    const waiting = Promise.all(Array.from({ length: 50 }, () => client.wait(task)))
    await lease.complete(7)
    expect(await passing(waiting)).toEqual(Array(50).fill(7))
    expect(clock.pendingTimers).toBe(1)
  })
})

describe('events', () => {
  it('[V02] tell each move of this process in order, with the task after it', async () => {
    const { client, clock } = await begin({ random: () => 0 })
    const seen: string[] = []
    const stop = client.onMove(({ move, from, task, by }) => seen.push(`${move}: ${from} → ${task.status} by ${by}`))
    await client.submit('work', {})
    client
      .worker({ id: 'w' })
      .handle('work', (_, ctx) => {
        if (ctx.attempt === 1) throw new RescheduleError('1s')
        if (ctx.attempt === 2) throw new Error('no')
      })
      .start()
    await clock.advance(2_000)
    expect(seen).toEqual([
      'submit: null → pending by test',
      'claim: pending → running by w',
      'reschedule: running → pending by w',
      'claim: pending → running by w',
      'fail: running → pending by w',
      'claim: pending → running by w',
      'complete: running → completed by w',
    ])
    stop()
    await client.submit('work', {})
    await clock.settle()
    expect(seen).toHaveLength(7)
  })

  it('a loop sees what happened between its making and its first turn, and ends with its signal', async () => {
    const { client, clock } = await begin()
    const controller = new AbortController()
    const events = client.events({ signal: controller.signal })
    const { id } = await client.submit('work', {})
    await client.cancel(id)
    const seen: MoveEvent[] = []
    const looped = (async () => {
      for await (const event of events) seen.push(event)
    })()
    await clock.settle()
    controller.abort()
    await looped
    expect(seen.map(({ move, task }) => [move, task.id])).toEqual([
      ['submit', id],
      ['cancel', id],
    ])
  })

  it('a listener that throws changes nothing', async () => {
    const { client, clock } = await begin()
    client.onMove(() => {
      throw new Error('a bad listener')
    })
    client
      .worker()
      .handle('work', () => 'done')
      .start()
    const results = await client.submitMany(Array.from({ length: 5 }, (_, i) => ({ type: 'work', input: i })))
    await clock.advance(5_000)
    for (const result of results) expect(result.ok && (await client.get(result.task.id)).output).toBe('done')
  })

  it('tells a move also when its reply was lost and only a second look found it written', async () => {
    const { lossy, onceFor } = await import('../../../src/testing/lossy-store.ts')
    const { client, passing } = await begin({ through: (store) => lossy(store, onceFor('commit', 'lose-reply')) })
    const seen: string[] = []
    client.onMove(({ move, from, task }) => seen.push(`${move}: ${from} → ${task.status}`))
    const { id } = await client.submit('work', {})
    await passing(client.cancel(id))
    expect(seen).toEqual(['submit: null → pending', 'cancel: pending → cancelled'])
  })
})

describe('progress', () => {
  it('is seen by others within about half a second; the last value wins; the revision stays', async () => {
    const { client, clock, another } = await begin()
    const end = gate()
    client
      .worker()
      .handle('long', async (_, ctx) => {
        ctx.progress({ done: 1 })
        ctx.progress({ done: 2 })
        await end.opened
        ctx.progress({ done: 3 })
      })
      .start()
    const { id } = await client.submit('long', {})
    await clock.advance(600)
    const other = await another()
    const task = await other.get(id)
    expect(task.progress).toEqual({ done: 2 })
    expect(task.revision).toBe(2)
    end.open()
    await clock.settle()
    expect((await other.get(id)).status).toBe('completed')
  })

  it('that cannot be stored is the handler’s error', async () => {
    const { client, clock } = await begin()
    client
      .worker()
      .handle('long', (_, ctx) => ctx.progress({ at: new Date() }))
      .start()
    const { id } = await client.submit('long', {}, { maxRetries: 0 })
    await clock.settle()
    expect((await client.get(id)).lastError?.message).toMatch(/^progress\.at is a Date/)
  })

  it('is gone when the task is pending again', async () => {
    const { client, clock } = await begin()
    client
      .worker()
      .handle('long', async (_, ctx) => {
        ctx.progress(50)
        await new Promise<void>((done) => clock.after(1_000, done))
        throw new RescheduleError('1h')
      })
      .start()
    const { id } = await client.submit('long', {})
    await clock.advance(800)
    expect((await client.get(id)).progress).toBe(50)
    await clock.advance(1_000)
    expect((await client.get(id)).progress).toBeNull()
  })
})
