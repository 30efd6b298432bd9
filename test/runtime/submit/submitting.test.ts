import { describe, expect, it } from 'vitest'
import { connect, silentLogger, Task, TaskStatus } from '../../../src/index.ts'
import type { Store } from '../../../src/store/store.ts'
import { lossy } from '../../../src/testing/lossy-store.ts'
import { begin, refuses, shown } from '../setup.ts'

describe('submitting', () => {
  it('[A01][A03][A04][A09][C01][D01][D02][D04][Z03] gives a task with all of its defaults', async () => {
    const { client, clock } = await begin()
    const task = await client.submit('send', { to: 'x' })
    const now = clock.wall()
    expect(task).toBeInstanceOf(Task)
    expect(shown(task)).toMatchObject({
      queue: 'default',
      type: 'send',
      input: { to: 'x' },
      output: null,
      status: 'pending',
      priority: 0,
      availableAt: now,
      expiresAt: null,
      expiredAt: null,
      idempotencyKey: null,
      attempts: 0,
      retryCount: 0,
      maxRetries: 3,
      rescheduleCount: 0,
      maxReschedules: null,
      replayCount: 0,
      replayedAs: null,
      replayOf: null,
      timeout: 300_000,
      lease: null,
      cancelRequestedAt: null,
      lastError: null,
      progress: null,
      createdAt: now,
      updatedAt: now,
      startedAt: null,
      completedAt: null,
      archivedFrom: null,
      scheduleId: null,
      tags: {},
      revision: 1,
      retryPolicy: { base: 500, multiplier: 2, max: 30_000, jitter: 'full' },
    })
    expect(task.id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-/)
    expect(task.deduplicated).toBe(false)
    expect(shown(await client.get(task.id))).toEqual(shown(task))
  })

  it('[D05][D06][D08][D09] takes every option together', async () => {
    const { client, clock } = await begin()
    const now = clock.wall()
    const task = await client.submit(
      'send',
      {},
      {
        queue: 'mail',
        priority: 7,
        delay: '5m',
        ttl: '1h',
        maxRetries: 1,
        maxReschedules: 100,
        timeout: '30s',
        tags: { team: 'a' },
        retryPolicy: { base: '1s', multiplier: 3, max: '1m', jitter: 'equal' },
        idempotencyKey: 'k',
        idempotencyTtl: '7d',
      },
    )
    expect(shown(task)).toMatchObject({
      queue: 'mail',
      priority: 7,
      availableAt: now + 300_000,
      expiresAt: now + 3_600_000,
      maxRetries: 1,
      maxReschedules: 100,
      timeout: 30_000,
      tags: { team: 'a' },
      retryPolicy: { base: 1_000, multiplier: 3, max: 60_000, jitter: 'equal' },
      idempotencyKey: 'k',
    })
    const dated = await client.submit(
      'send',
      {},
      { at: new Date(now + 1_000), expiresAt: new Date(now + 2_000).toISOString() },
    )
    expect([dated.availableAt - now, dated.expiresAt! - now]).toEqual([1_000, 2_000])
  })

  it('[D10][D14] null, an empty text, {} and [] are values; undefined is not', async () => {
    const { client } = await begin()
    for (const input of [null, '', {}, [], 0, false])
      expect((await client.get((await client.submit('t', input)).id)).input).toEqual(input)
    await refuses('INVALID_TASK', /^input is undefined/)(client.submit('t', undefined))
  })

  it('bytes go in and come out as bytes, also as output', async () => {
    const { client, passing } = await begin()
    const bytes = new Uint8Array([0, 1, 254, 255, 10])
    client
      .worker()
      .handle('flip', (input) => (input as Uint8Array).toReversed())
      .start()
    const task = await client.submit('flip', bytes)
    expect(task.encoding).toBe('base64')
    expect(task.input).toEqual(bytes)
    const output = await passing(client.wait(task))
    expect(output).toEqual(new Uint8Array([10, 255, 254, 1, 0]))
    expect((await client.get(task.id)).toJSON()).toMatchObject({
      input: 'AAH+/wo=',
      output: 'Cv/+AQA=',
      encoding: 'base64',
    })
  })

  it('an id may be given: any UUID, in lower case; a clash is ALREADY_EXISTS', async () => {
    const { client } = await begin()
    const id = 'B5D1C5A2-0000-4000-8000-00000000ABCD'
    expect((await client.submit('t', 1, { id })).id).toBe(id.toLowerCase())
    await refuses('ALREADY_EXISTS')(client.submit('t', 1, { id }))
    expect((await client.get(id)).input).toBe(1)
    await refuses('INVALID_TASK', /not a UUID/)(client.submit('t', 1, { id: 'seven' }))
    await refuses('INVALID_TASK')(client.get('seven'))
  })

  it('[D13] when the store cannot be reached, submit rejects and says what to do', async () => {
    let away = false
    const { client, passing } = await begin({
      through: (store) => lossy(store, () => (away ? 'drop-request' : 'pass')),
    })
    away = true
    await refuses(
      'STORE_UNAVAILABLE',
      /submit again with the same id or idempotency key/,
    )(passing(client.submit('t', 1)))
    const results = await passing(client.submitMany([{ type: 't', input: 1 }]))
    expect(results).toMatchObject([{ ok: false, error: { code: 'STORE_UNAVAILABLE' } }])
    away = false
    expect((await client.count()).count, 'nothing is half written').toBe(0)
  })

  it('nothing is written when an option is wrong', async () => {
    const { client } = await begin()
    await refuses('INVALID_OPTION')(client.submit('t', 1, { priority: 5_000 }))
    await refuses('INVALID_TASK')(client.submit('bad type', 1))
    await refuses('INVALID_DURATION', /bare number/)(client.submit('t', 1, { delay: 5 as never }))
    await refuses('PAYLOAD_TOO_LARGE')(client.submit('t', 'x'.repeat(1_048_577)))
    await refuses('INVALID_OPTION', /tx is not possible/)(client.submit('t', 1, { tx: {} as never }))
    expect((await client.count()).count).toBe(0)
    expect(await client.stats()).toEqual([])
  })

  it('[U05] TaskStatus is a const object', async () => {
    const { client } = await begin()
    const task = await client.submit('t', 1)
    expect(task.status === TaskStatus.pending).toBe(true)
    expect(Object.keys(TaskStatus), '[B01][B02][B03][B04]').toEqual([
      'pending',
      'running',
      'completed',
      'failed',
      'cancelled',
      'expired',
      'archived',
    ])
  })

  it('[A26] JSON shows instants as ISO 8601 and nulls as null', async () => {
    const { client, clock } = await begin()
    const task = await client.submit('t', { at: 5 }, { ttl: '1h' })
    const json = JSON.parse(JSON.stringify(task))
    expect(json).toMatchObject({
      createdAt: new Date(clock.wall()).toISOString(),
      maxReschedules: null,
      expiredAt: null,
      input: { at: 5 },
      status: 'pending',
    })
    expect(json.expiresAt).toBe('2026-01-28T13:00:00.000Z')
    expect(json.history[0].at).toBe('2026-01-28T12:00:00.000Z')
    expect(json).not.toHaveProperty('deduplicated')
  })

  it('an address that names no store is refused', async () => {
    await refuses('INVALID_OPTION')(connect('redis://x', { logger: silentLogger }))
    await refuses('INVALID_OPTION')(connect('sqlite:', { logger: silentLogger }))
    await refuses('INVALID_OPTION')(connect('memory:', { maxPayload: 0, logger: silentLogger }))
    await (await connect('memory:', { logger: silentLogger })).close()
  })
})

describe('submitting many', () => {
  it('[D07] each item has its own result, in order, and a bad one does not stop the others', async () => {
    const { client, clock } = await begin()
    const results = await client.submitMany(
      [
        { type: 'a', input: 1 },
        { type: 'a', input: undefined },
        { type: 'no good', input: 2 },
        { type: 'b', input: 3, ttl: '2h', priority: 3 },
      ],
      { ttl: '1h', queue: 'bulk' },
    )
    expect(results.map((result) => (result.ok ? result.task.input : result.error.code))).toEqual([
      1,
      'INVALID_TASK',
      'INVALID_TASK',
      3,
    ])
    const tasks = results.flatMap((result) => (result.ok ? [result.task] : []))
    expect(tasks.map(({ queue, expiresAt }) => [queue, expiresAt! - clock.wall()])).toEqual([
      ['bulk', 3_600_000],
      ['bulk', 7_200_000],
    ])
    expect((await client.count({ queue: 'bulk' })).count).toBe(2)
  })

  it('an option shared by all cannot be one that belongs to one', async () => {
    const { client } = await begin()
    await refuses('INVALID_OPTION')(client.submitMany([{ type: 'a', input: 1 }], { idempotencyKey: 'k' }))
    await refuses('INVALID_OPTION')(client.submitMany([], { id: '01900000-0000-7000-8000-000000000000' }))
    expect(await client.submitMany([])).toEqual([])
  })

  it('the same key twice in one call is one task', async () => {
    const { client } = await begin()
    const item = { type: 'a', input: 1, idempotencyKey: 'k' }
    const results = await client.submitMany([item, item, { ...item, input: 2 }])
    expect(results.map((result) => (result.ok ? result.task.deduplicated : result.error.code))).toEqual([
      false,
      true,
      'IDEMPOTENCY_CONFLICT',
    ])
    expect((await client.count()).count).toBe(1)
  })

  it('thousands go in chunks, in order', async () => {
    const { client } = await begin()
    const results = await client.submitMany(Array.from({ length: 3_500 }, (_, i) => ({ type: 'a', input: i })))
    expect(results.every((result, i) => result.ok && result.task.input === i)).toBe(true)
    expect((await client.count()).count).toBe(3_500)
  })

  it('the first chunk is on its way before the rest is prepared', async () => {
    const order: string[] = []
    const { client } = await begin({
      through: (store) =>
        new Proxy(store, {
          get(target, name) {
            if (name !== 'insert') return Reflect.get(target, name)
            // As drivers do: they send on the next turn of the event loop.
            return async (...given: Parameters<Store['insert']>) => {
              await new Promise(setImmediate)
              order.push('sent')
              return store.insert(...given)
            }
          },
        }),
    })
    const input = (n: number) => ({
      get n() {
        if (n === 999) order.push('all are prepared')
        return n
      },
    })
    await client.submitMany(Array.from({ length: 1_000 }, (_, n) => ({ type: 'a', input: input(n) })))
    expect(order[0]).toBe('sent')
    expect(order).toContain('all are prepared')
  })
})
