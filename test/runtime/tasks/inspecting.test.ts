import { describe, expect, it } from 'vitest'
import { PermanentError } from '../../../src/index.ts'
import { begin, refuses } from '../setup.ts'

describe('listing', () => {
  it('[U01][U02] by status or view, also by the names of other designs', async () => {
    const { client } = await begin({ random: () => 0.9 })
    const ready = await client.submit('work', 'ready')
    const scheduled = await client.submit('work', 'scheduled', { delay: '1h' })
    const retrying = await client.submit('work', 'retrying', { retryPolicy: { base: '1h' } })
    await (await client.claim(retrying.id, { workerId: 'w' })).fail(new Error('no'))
    const running = await client.submit('work', 'running')
    await client.claim(running.id, { workerId: 'w' })
    const completed = await client.submit('work', 'completed')
    await (await client.claim(completed.id, { workerId: 'w' })).complete()
    const dead = await client.submit('work', 'dead')
    await (await client.claim(dead.id, { workerId: 'w' })).fail(new PermanentError('no'))
    const expired = await client.submit('work', 'expired')
    await client.markExpired(expired.id)
    const inputs = async (status?: string | string[]) =>
      (await client.list(status === undefined ? {} : { status })).tasks.map(({ input }) => input).sort()
    expect(await inputs('ready')).toEqual(['ready'])
    expect(await inputs('scheduled')).toEqual(['retrying', 'scheduled'])
    for (const name of ['retrying', 'retry']) expect(await inputs(name), '[B05][C14]').toEqual(['retrying'])
    for (const name of ['running', 'in_flight', 'claimed', 'RUNNING']) expect(await inputs(name)).toEqual(['running'])
    for (const name of ['completed', 'succeeded', 'success']) expect(await inputs(name)).toEqual(['completed'])
    for (const name of ['failed', 'dead', 'dlq']) expect(await inputs(name)).toEqual(['dead'])
    expect(await inputs('pending')).toEqual(['ready', 'retrying', 'scheduled'])
    expect(await inputs(['expired', 'dead'])).toEqual(['dead', 'expired'])
    expect(await inputs()).toHaveLength(7)
    await refuses('INVALID_OPTION', /is not one of/)(client.list({ status: 'finished' }))
    await refuses('INVALID_OPTION')(client.list({ status: [] }))
    expect([ready, scheduled].map(({ status }) => status)).toEqual(['pending', 'pending'])
  })

  it('goes on from a cursor, newest or oldest first, each task once, whatever is added meanwhile', async () => {
    const { client } = await begin()
    for (let i = 0; i < 25; i++) await client.submit('work', i)
    for (const order of ['newest', 'oldest'] as const) {
      const seen: unknown[] = []
      let cursor: string | null = null
      let pages = 0
      do {
        const page: Awaited<ReturnType<typeof client.list>> = await client.list({
          order,
          limit: 10,
          type: 'work',
          ...(cursor === null ? {} : { cursor }),
        })
        seen.push(...page.tasks.map(({ input }) => input))
        cursor = page.cursor
        pages++
        if (order === 'newest') await client.submit('work', 'added')
      } while (cursor !== null)
      const numbers = seen.filter((input) => typeof input === 'number')
      expect(numbers).toEqual(
        order === 'oldest' ? Array.from({ length: 25 }, (_, i) => i) : Array.from({ length: 25 }, (_, i) => 24 - i),
      )
      expect(pages).toBe(3)
    }
    await refuses('INVALID_OPTION')(client.list({ cursor: 'x' }))
    await refuses('INVALID_OPTION')(client.list({ limit: 0 }))
    await refuses('INVALID_OPTION')(client.list({ limit: 1_001 }))
    await refuses('INVALID_OPTION')(client.list({ order: 'random' as never }))
  })

  it('by queue, type, tag, worker and time', async () => {
    const { client, clock } = await begin()
    const start = clock.wall()
    await client.submit('a', 1, { queue: 'q', tags: { team: 'x' } })
    await clock.advance(1_000)
    await client.submit('b', 2, { tags: { team: 'y' } })
    await clock.advance(1_000)
    const held = await client.submit('a', 3)
    await client.claim(held.id, { workerId: 'me' })
    const inputs = async (query: Parameters<typeof client.list>[0]) =>
      (await client.list({ order: 'oldest', ...query })).tasks.map(({ input }) => input)
    expect(await inputs({ queue: 'q' })).toEqual([1])
    expect(await inputs({ type: 'a' })).toEqual([1, 3])
    expect(await inputs({ tag: { name: 'team', value: 'y' } })).toEqual([2])
    expect(await inputs({ workerId: 'me' })).toEqual([3])
    expect(await inputs({ createdAfter: start })).toEqual([2, 3])
    expect(await inputs({ createdBefore: new Date(start + 2_000) })).toEqual([1, 2])
    await refuses('INVALID_OPTION')(client.list({ queue: 'no good' }))
  })
})

describe('counting', () => {
  it('is exact up to a cap', async () => {
    const { client } = await begin()
    await client.submitMany(Array.from({ length: 12 }, () => ({ type: 'work', input: 1 })))
    expect(await client.count()).toEqual({ count: 12, capped: false })
    expect(await client.count({}, { cap: 12 })).toEqual({ count: 12, capped: false })
    expect(await client.count({ status: 'ready' }, { cap: 5 })).toEqual({ count: 5, capped: true })
    await refuses('INVALID_OPTION')(client.count({}, { cap: 0 }))
  })

  it('stats tell of every queue that was used, also an empty one', async () => {
    const { client, clock } = await begin()
    await client.submit('work', 1, { queue: 'a' })
    await client.submit('work', 2, { queue: 'a', delay: '1h' })
    const gone = await client.submit('work', 3, { queue: 'b' })
    await client.cancel(gone.id)
    await client.delete(gone.id)
    await client.queue('b').pause()
    const zero = {
      ready: 0,
      scheduled: 0,
      retrying: 0,
      parked: 0,
      running: 0,
      completed: 0,
      failed: 0,
      cancelled: 0,
      expired: 0,
      archived: 0,
      capped: [],
    }
    const flowing = { paused: false, pausedUntil: null, pause: null, limits: null, pausedGroups: [], groupPauses: {} }
    expect(await client.stats()).toEqual([
      { queue: 'a', ...flowing, ...zero, ready: 1, scheduled: 1 },
      {
        queue: 'b',
        ...flowing,
        ...zero,
        paused: true,
        pause: { at: new Date(clock.wall()).toISOString(), by: 'test' },
      },
    ])
  })
})

describe('removing what has ended', () => {
  it('[U03] prune removes what ended long enough ago, and nothing else', async () => {
    const { client, clock } = await begin()
    const done = async (input: unknown) => {
      const { id } = await client.submit('work', input)
      await (await client.claim(id, { workerId: 'w' })).complete()
      return id
    }
    const old = await done('old')
    const archived = await done('archived')
    await client.archive(archived)
    const pending = await client.submit('work', 'pending')
    await clock.advance(24 * 3_600_000)
    const fresh = await done('fresh')
    expect(await client.prune({ olderThan: '1d', status: 'failed' })).toBe(0)
    expect(await client.prune({ olderThan: '1d' })).toBe(1)
    await refuses('TASK_NOT_FOUND')(client.get(old))
    for (const id of [archived, pending.id, fresh]) await client.get(id)
    expect(await client.prune({ olderThan: '1d', status: 'archived' })).toBe(1)
    await refuses('INVALID_OPTION')(client.prune({ olderThan: '1d', status: 'pending' }))
  })

  it('prune stops at its limit, and takes one queue where told', async () => {
    const { client } = await begin()
    for (let i = 0; i < 10; i++) {
      const { id } = await client.submit('work', i, { queue: i % 2 === 0 ? 'even' : 'odd' })
      if (i < 5) await client.cancel(id)
      else await client.markExpired(id)
    }
    expect(await client.prune({ olderThan: 0, limit: 3 })).toBe(3)
    expect(await client.prune({ olderThan: 0, queue: 'odd' })).toBeGreaterThan(0)
    expect((await client.count({ queue: 'odd' })).count).toBe(0)
    expect(await client.prune({ olderThan: 0 })).toBeGreaterThan(0)
    expect((await client.count()).count).toBe(0)
  })

  it('retention removes by status and age while a worker runs', async () => {
    const { client, clock } = await begin({ retention: { completed: '1h', failed: '2h' } })
    client
      .worker()
      .handle('good', () => {})
      .handle('bad', () => {
        throw new PermanentError('no')
      })
      .start()
    const good = await client.submit('good', {})
    const bad = await client.submit('bad', {})
    await clock.advance(3_600_000 - 60_000)
    await client.get(good.id)
    await clock.advance(180_000)
    await refuses('TASK_NOT_FOUND')(client.get(good.id))
    await client.get(bad.id)
    await clock.advance(3_600_000)
    await refuses('TASK_NOT_FOUND')(client.get(bad.id))
  })

  it('retention 0 removes at once', async () => {
    const { client, clock } = await begin({ retention: { completed: 0 } })
    client
      .worker()
      .handle('good', () => {})
      .start()
    const { id } = await client.submit('good', {})
    await clock.settle()
    await refuses('TASK_NOT_FOUND')(client.get(id))
  })

  it('retention 0 leaves nothing of a task: its id is then a new one, told from the old by createdAt and not by the fence', async () => {
    const { client, clock } = await begin({ retention: { completed: 0 } })
    const runs: [fence: number, createdAt: number][] = []
    client
      .worker()
      .handle('good', (_, { fence, task }) => void runs.push([fence, task.createdAt]))
      .start()
    const { id } = await client.submit('good', {})
    await clock.advance(1_000)
    const second = await client.submit('good', {}, { id })
    expect(second.deduplicated).toBe(false)
    await clock.advance(1_000)
    const [first = [0, 0]] = runs
    expect(runs).toEqual([
      [1, first[1]],
      [1, first[1] + 1_000],
    ])
  })

  it('without retention everything stays', async () => {
    const { client, clock } = await begin()
    const worker = client.worker().handle('good', () => {})
    const { id } = await client.submit('good', {})
    await worker.drain()
    await clock.advance(365 * 86_400_000)
    expect((await client.get(id)).status).toBe('completed')
  })

  it('retention of what has not ended is refused', async () => {
    const { another } = await begin()
    await refuses('INVALID_OPTION')(another({ retention: { pending: '1h' } as never }))
  })
})
