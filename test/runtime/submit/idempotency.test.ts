import { describe, expect, it } from 'vitest'
import { begin, refuses } from '../setup.ts'

const DAY = 86_400_000

describe('an idempotency key', () => {
  it('[E01][E02][D03][A18] gives the existing task to a repeated submit, whatever its status', async () => {
    const { client, clock } = await begin()
    const first = await client.submit('charge', { order: 7 }, { idempotencyKey: 'order-7' })
    expect(first.deduplicated).toBe(false)
    const again = async () => client.submit('charge', { order: 7 }, { idempotencyKey: 'order-7' })
    const second = await again()
    expect([second.id, second.deduplicated]).toEqual([first.id, true])
    const lease = await client.claim(first.id, { workerId: 'w' })
    expect((await again()).status).toBe('running')
    await lease.complete('paid')
    const done = await again()
    expect([done.id, done.status, done.output, done.deduplicated], '[E04] terminal too').toEqual([
      first.id,
      'completed',
      'paid',
      true,
    ])
    await client.archive(first.id)
    expect((await again()).status).toBe('archived')
    expect((await client.count({ status: ['pending', 'running', 'completed', 'archived'] })).count).toBe(1)
    await clock.advance(0)
  })

  it('[E03][D16] is checked atomically: of any number of submits at once one creates', async () => {
    const { client, another } = await begin()
    const clients = [client, await another(), await another()]
    const tasks = await Promise.all(
      Array.from({ length: 30 }, (_, i) => clients[i % 3]!.submit('charge', {}, { idempotencyKey: 'k' })),
    )
    expect(new Set(tasks.map(({ id }) => id)).size).toBe(1)
    expect(tasks.filter(({ deduplicated }) => !deduplicated)).toHaveLength(1)
  })

  it('of another type or input is a conflict, unless the existing one will do', async () => {
    const { client } = await begin()
    const { id } = await client.submit('charge', { a: 1, b: [2, { c: 3, d: 4 }] }, { idempotencyKey: 'k' })
    await refuses('IDEMPOTENCY_CONFLICT', id)(client.submit('charge', { a: 2 }, { idempotencyKey: 'k' }))
    await refuses('IDEMPOTENCY_CONFLICT')(
      client.submit('refund', { a: 1, b: [2, { c: 3, d: 4 }] }, { idempotencyKey: 'k' }),
    )
    await refuses('IDEMPOTENCY_CONFLICT')(client.submit('charge', new Uint8Array([1]), { idempotencyKey: 'k' }))
    expect(
      (await client.submit('charge', { b: [2, { d: 4, c: 3 }], a: 1 }, { idempotencyKey: 'k' })).id,
      'the order of keys is nothing',
    ).toBe(id)
    const existing = await client.submit('refund', {}, { idempotencyKey: 'k', onMismatch: 'existing' })
    expect([existing.id, existing.type, existing.deduplicated]).toEqual([id, 'charge', true])
    expect(
      (
        await client.submit(
          'charge',
          { a: 1, b: [2, { c: 3, d: 4 }] },
          { idempotencyKey: 'k', queue: 'other', priority: 9 },
        )
      ).id,
      'options do not count',
    ).toBe(id)
  })

  it('[E05] finds its task: TASK_NOT_FOUND when it was never used', async () => {
    const { client } = await begin()
    const { id } = await client.submit('charge', {}, { idempotencyKey: 'k' })
    expect((await client.getByIdempotencyKey('k')).id).toBe(id)
    await refuses('TASK_NOT_FOUND')(client.getByIdempotencyKey('other'))
  })

  it('lives as long as its task, though its 24 hours are over', async () => {
    const { client, clock } = await begin()
    const { id } = await client.submit('charge', {}, { idempotencyKey: 'k' })
    await clock.advance(30 * DAY)
    expect((await client.submit('charge', {}, { idempotencyKey: 'k' })).id).toBe(id)
  })

  it('lives at least 24 hours, also past prune', async () => {
    const { client, clock } = await begin()
    const { id } = await client.submit('charge', {}, { idempotencyKey: 'k' })
    await (await client.claim(id, { workerId: 'w' })).complete('paid')
    expect(await client.prune({ olderThan: 0 })).toBe(1)
    const repeated = await client.submit('charge', {}, { idempotencyKey: 'k' })
    expect([repeated.id, repeated.deduplicated, repeated.status]).toEqual([id, true, 'archived'])
    await refuses('IDEMPOTENCY_CONFLICT')(client.submit('charge', { other: 1 }, { idempotencyKey: 'k' }))
    await refuses('TASK_NOT_FOUND')(client.getByIdempotencyKey('k'))
    await clock.advance(DAY - 1)
    expect((await client.submit('charge', {}, { idempotencyKey: 'k' })).deduplicated).toBe(true)
    await clock.advance(1)
    const fresh = await client.submit('charge', {}, { idempotencyKey: 'k' })
    expect([fresh.deduplicated, fresh.id === id]).toEqual([false, false])
  })

  it('outlives a task that is removed as soon as it has ended: a repeat does not run again', async () => {
    const { client, clock } = await begin({ retention: { completed: 0 } })
    let runs = 0
    client
      .worker()
      .handle('charge', () => ++runs)
      .start()
    const { id } = await client.submit('charge', {}, { idempotencyKey: 'k' })
    await clock.settle()
    await refuses('TASK_NOT_FOUND')(client.get(id))
    const again = await client.submit('charge', {}, { idempotencyKey: 'k' })
    await clock.settle()
    expect([again.id, again.deduplicated, runs]).toEqual([id, true, 1])
  })

  it('[A24][E09] with a TTL of its own ends exactly then, even while its task is there', async () => {
    const { client, clock } = await begin()
    const submit = () => client.submit('charge', {}, { idempotencyKey: 'k', idempotencyTtl: '1h' })
    const first = await submit()
    await clock.advance(3_599_999)
    expect((await submit()).id).toBe(first.id)
    await clock.advance(1)
    const second = await submit()
    expect([second.deduplicated, second.id === first.id]).toEqual([false, false])
    expect((await client.getByIdempotencyKey('k')).id).toBe(second.id)
  })

  it('[E06] is ended by an operator’s delete', async () => {
    const { client } = await begin()
    const { id } = await client.submit('charge', {}, { idempotencyKey: 'k' })
    await client.cancel(id)
    await client.delete(id)
    await refuses('TASK_NOT_FOUND')(client.getByIdempotencyKey('k'))
    expect((await client.submit('charge', { other: 1 }, { idempotencyKey: 'k' })).deduplicated).toBe(false)
  })

  it('holds for the whole store, not for one queue', async () => {
    const { client } = await begin()
    const { id } = await client.submit('charge', {}, { idempotencyKey: 'k', queue: 'a' })
    expect((await client.submit('charge', {}, { idempotencyKey: 'k', queue: 'b' })).id).toBe(id)
  })

  it('a task without one is never deduplicated', async () => {
    const { client } = await begin()
    expect((await client.submit('charge', {})).id).not.toBe((await client.submit('charge', {})).id)
  })

  it('keys that Holdfast makes itself cannot be taken', async () => {
    const { client } = await begin()
    await refuses('INVALID_OPTION', /begin with/)(client.submit('t', 1, { idempotencyKey: 'replay:x:1' }))
    await refuses('INVALID_OPTION')(client.submit('t', 1, { idempotencyKey: 'schedule:x' }))
    await refuses('INVALID_OPTION')(client.submit('t', 1, { idempotencyTtl: '1h' }))
  })
})
