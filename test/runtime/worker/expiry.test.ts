import { describe, expect, it } from 'vitest'
import { PermanentError } from '../../../src/index.ts'
import { begin, gate, movesOf, refuses, shown } from '../setup.ts'

describe('[AA3] expiry', () => {
  it('[A05][A06][A07][J01][J02][J03][B06] a task not claimed by then is marked expired by whoever looks, and never run', async () => {
    const { client, clock } = await begin()
    let runs = 0
    const { id, expiresAt } = await client.submit('work', {}, { ttl: '30s' })
    await clock.advance(30_000)
    client
      .worker()
      .handle('work', () => void runs++)
      .start()
    await clock.advance(1_000)
    const task = await client.get(id)
    expect(runs).toBe(0)
    expect(shown(task)).toMatchObject({ status: 'expired', attempts: 0, lastError: null, expiresAt })
    expect(task.expiredAt).toBeGreaterThanOrEqual(expiresAt!)
    expect(task.updatedAt).toBe(task.expiredAt)
    expect((await client.list({ status: 'dead' })).tasks, 'not a failure').toEqual([])
    expect(movesOf(task), '[V01]').toEqual(['submit → pending', 'expire → expired'])
  })

  it('[J07] a ttl of 0 has expired already', async () => {
    const { client, clock } = await begin()
    const task = await client.submit('work', {}, { ttl: 0 })
    expect(task.isExpiredAt(clock.wall())).toBe(true)
    await refuses('TASK_EXPIRED')(client.claim(task.id, { workerId: 'w' }))
    expect((await client.get(task.id)).status).toBe('expired')
  })

  it('[J05][J08][J09] is now >= expiresAt; without a ttl never', async () => {
    const { client, clock } = await begin()
    const mortal = await client.submit('work', {}, { ttl: '10s' })
    const immortal = await client.submit('work', {})
    const now = clock.wall()
    expect([mortal.isExpiredAt(now + 9_999), mortal.isExpiredAt(now + 10_000)]).toEqual([false, true])
    expect(immortal.isExpiredAt(Number.MAX_SAFE_INTEGER)).toBe(false)
    expect(mortal.expiresAt! - (await client.now()), 'by the store’s clock').toBe(10_000)
  })

  it('[F16][Z01] does not slide: not on claim, not on retry', async () => {
    const { client, clock } = await begin({ random: () => 0 })
    const { id, expiresAt } = await client.submit('work', {}, { ttl: '1m' })
    await clock.advance(5_000)
    const lease = await client.claim(id, { workerId: 'w' })
    expect((await client.get(id)).expiresAt).toBe(expiresAt)
    await lease.fail(new Error('no'))
    expect((await client.get(id)).expiresAt).toBe(expiresAt)
  })

  it('[J06] a running task that passes it goes on, and its handler may look', async () => {
    const { client, clock } = await begin()
    const end = gate()
    client
      .worker()
      .handle('patient', () => end.opened)
      .handle('strict', async (_, ctx) => {
        await end.opened
        if (ctx.task.isExpiredAt(await ctx.client.now())) throw new PermanentError('too late to be of use')
      })
      .start()
    const patient = await client.submit('patient', {}, { ttl: '10s' })
    const strict = await client.submit('strict', {}, { ttl: '10s' })
    await clock.advance(60_000)
    expect((await client.get(patient.id)).status).toBe('running')
    end.open()
    await clock.settle()
    expect((await client.get(patient.id)).status).toBe('completed')
    expect((await client.get(strict.id)).lastError?.message).toBe('too late to be of use')
  })

  it('[H10][J12] a retry beyond it simply expires', async () => {
    const { client, clock } = await begin()
    client
      .worker()
      .handle('work', () => {
        throw new Error('no')
      })
      .start()
    const { id } = await client.submit('work', {}, { ttl: '10s', retryPolicy: { base: '30s', jitter: 'none' } })
    await clock.settle()
    expect((await client.get(id)).availableAt).toBeGreaterThan((await client.get(id)).expiresAt!)
    await clock.advance(15_000)
    expect(shown(await client.get(id))).toMatchObject({ status: 'expired', attempts: 1, retryCount: 1 })
  })

  it('[J12] a scheduled task can expire before it is due', async () => {
    const { client, clock } = await begin()
    client
      .worker()
      .handle('work', () => {})
      .start()
    const { id } = await client.submit('work', {}, { delay: '1h', ttl: '10s' })
    await clock.advance(15_000)
    expect((await client.get(id)).status).toBe('expired')
  })

  it('[J04][C11][Y01] by hand on any pending task; else CANNOT_EXPIRE with the status', async () => {
    const { client, clock } = await begin()
    const { id } = await client.submit('work', {})
    const expired = await client.markExpired(id)
    expect(shown(expired)).toMatchObject({ status: 'expired', expiredAt: clock.wall(), completedAt: clock.wall() })
    const cannot = client.markExpired(id)
    await refuses('CANNOT_EXPIRE', /is expired/)(cannot)
    await expect(cannot).rejects.toMatchObject({ details: { status: 'expired' } })
    const other = await client.submit('work', {})
    await client.claim(other.id, { workerId: 'w' })
    await refuses('CANNOT_EXPIRE', /is running/)(client.markExpired(other.id))
    await refuses('TASK_NOT_FOUND')(client.markExpired('01900000-0000-7000-8000-000000000000'))
  })

  it('[J10][C13][Z01] an expired task cannot be retried, cancelled or claimed; it can be archived and deleted', async () => {
    const { client } = await begin()
    const { id } = await client.submit('work', {})
    await client.markExpired(id)
    await refuses('CANNOT_RETRY')(client.retry(id))
    await refuses('CANNOT_CANCEL')(client.cancel(id))
    await refuses('TASK_EXPIRED')(client.claim(id, { workerId: 'w' }))
    expect((await client.archive(id)).archivedFrom).toBe('expired')
    await client.delete(id)
    await refuses('TASK_NOT_FOUND')(client.get(id))
  })

  it('any number of expired tasks do not hold up what is ready', async () => {
    const { client, clock } = await begin()
    await client.submitMany(
      Array.from({ length: 1_000 }, () => ({ type: 'work', input: 'old', priority: 10 })),
      { ttl: '1s' },
    )
    await clock.advance(2_000)
    const fresh = await client.submit('work', 'new')
    client
      .worker()
      .handle('work', () => 'done')
      .start()
    await clock.settle()
    expect((await client.get(fresh.id)).output).toBe('done')
    expect((await client.count({ status: 'expired' })).count, 'again at once while batches are full').toBe(1_000)
  })
})
