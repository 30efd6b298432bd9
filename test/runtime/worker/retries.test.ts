import { describe, expect, it } from 'vitest'
import { PermanentError, RetryableError } from '../../../src/index.ts'
import { begin, movesOf, shown } from '../setup.ts'

describe('a handler that fails', () => {
  it('[A10][H02][H03][H11] is run four times by default, then the task is failed', async () => {
    const { client, clock } = await begin()
    let runs = 0
    client
      .worker()
      .handle('email', () => {
        runs++
        throw new Error('no route')
      })
      .start()
    const { id } = await client.submit('email', {})
    await clock.advance(120_000)
    const task = await client.get(id)
    expect(runs).toBe(4)
    expect(shown(task)).toMatchObject({ status: 'failed', attempts: 4, retryCount: 3, maxRetries: 3 })
    expect(task.lastError).toMatchObject({ name: 'Error', message: 'no route', attempt: 4 })
    expect(task.completedAt).toBe(task.history.at(-1)!.at)
    expect(movesOf(task).filter((move) => move.startsWith('fail'))).toEqual([
      'fail → pending',
      'fail → pending',
      'fail → pending',
      'fail → failed',
    ])
  })

  it('[A08][C04][H01][H05][A16][P04] waits for its backoff: not claimable before availableAt, claimable from then on', async () => {
    const { client, clock } = await begin({ random: () => 0.999 })
    let runs = 0
    client
      .worker()
      .handle('email', () => {
        if (++runs === 1) throw new RetryableError('later')
      })
      .start()
    const { id } = await client.submit('email', {}, { retryPolicy: { base: '10s', jitter: 'none' } })
    await clock.settle()
    const waiting = await client.get(id)
    expect(shown(waiting)).toMatchObject({ status: 'pending', retryCount: 1, lease: null, completedAt: null })
    expect(waiting.availableAt).toBe(clock.wall() + 10_000)
    expect(waiting.viewAt(clock.wall())).toBe('retrying')
    await clock.advance(9_999)
    expect(runs).toBe(1)
    await clock.advance(1)
    expect(runs).toBe(2)
    expect((await client.get(id)).lastError?.message, 'the last error stays').toBe('later')
  })

  it('[H04][H06][A25] waits random(0, min(base × multiplier^retryCount, max)): the first cap is the base', async () => {
    const { client, clock } = await begin({ random: () => 0.999_999 })
    client
      .worker()
      .handle('email', () => {
        throw new Error('again')
      })
      .start()
    const { id } = await client.submit('email', {}, { maxRetries: 8 })
    await clock.advance(300_000)
    const delays = (await client.get(id)).history
      .filter(({ move, to }) => move === 'fail' && to === 'pending')
      .map(({ at, availableAt }) => availableAt! - at)
    expect(delays).toEqual([500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000])
  })

  it('[H04] may be due again at once, when the dice say so', async () => {
    const { client, clock } = await begin({ random: () => 0 })
    let runs = 0
    client
      .worker()
      .handle('email', () => {
        runs++
        throw new Error('again')
      })
      .start()
    await client.submit('email', {})
    await clock.settle()
    expect(runs).toBe(4)
  })

  it('[H11][C05] ends at once with PermanentError, whatever is left of its retries', async () => {
    const { client, clock } = await begin()
    client
      .worker()
      .handle('email', () => {
        throw new PermanentError('no such user')
      })
      .start()
    const { id } = await client.submit('email', {})
    await clock.settle()
    expect(shown(await client.get(id))).toMatchObject({
      status: 'failed',
      attempts: 1,
      retryCount: 0,
      lastError: { name: 'PermanentError', message: 'no such user' },
    })
  })

  it('[Y01] a permanent error of another copy of the package is told by its name', async () => {
    const { client, clock } = await begin()
    client
      .worker()
      .handle('email', () => {
        throw Object.assign(new Error('gone'), { name: 'PermanentError' })
      })
      .start()
    const { id } = await client.submit('email', {})
    await clock.settle()
    expect((await client.get(id)).status).toBe('failed')
  })

  it('[A19][H07] maxAttempts 3 is three runs, 1 is one run, 0 is no limit', async () => {
    const { client, clock } = await begin({ random: () => 0 })
    const runs: Record<string, number> = {}
    client
      .worker()
      .handle('email', (input) => {
        const { name } = input as { name: string }
        runs[name] = (runs[name] ?? 0) + 1
        if (runs[name] < 50) throw new Error('again')
      })
      .start()
    await client.submit('email', { name: 'three' }, { maxAttempts: 3 })
    await client.submit('email', { name: 'one' }, { maxAttempts: 1 })
    await client.submit('email', { name: 'no limit' }, { maxAttempts: 0 })
    await clock.settle()
    expect(runs).toEqual({ three: 3, one: 1, 'no limit': 50 })
  })

  it('maxRetries 0 is none, null is unlimited', async () => {
    const { client, clock } = await begin({ random: () => 0 })
    let runs = 0
    client
      .worker()
      .handle('once', () => {
        throw new Error('no')
      })
      .handle('often', () => {
        if (++runs < 40) throw new Error('no')
      })
      .start()
    const once = await client.submit('once', {}, { maxRetries: 0 })
    const often = await client.submit('often', {}, { maxRetries: null })
    await clock.settle()
    expect(shown(await client.get(once.id))).toMatchObject({ status: 'failed', attempts: 1 })
    expect(shown(await client.get(often.id))).toMatchObject({ status: 'completed', attempts: 40, retryCount: 39 })
  })

  it('[H12] may be run by another worker the next time', async () => {
    const { client, clock, another } = await begin({ random: () => 0 })
    const { id } = await client.submit('email', {})
    const lease = await client.claim(id, { workerId: 'a' })
    await lease.fail(new Error('a cannot'))
    const other = await another({ name: 'other' })
    other
      .worker({ id: 'b' })
      .handle('email', () => 'b can')
      .start()
    await clock.settle()
    const task = await client.get(id)
    expect(shown(task)).toMatchObject({ status: 'completed', attempts: 2, output: 'b can' })
    expect(task.history.filter(({ move }) => move === 'claim').map(({ by }) => by)).toEqual(['a', 'b'])
  })

  it('[C16][G01] that then succeeds is never run again', async () => {
    const { client, clock } = await begin()
    let runs = 0
    client
      .worker()
      .handle('email', () => {
        runs++
        return { sent: true }
      })
      .start()
    const { id } = await client.submit('email', {})
    await clock.advance(600_000)
    expect(runs).toBe(1)
    expect(shown(await client.get(id))).toMatchObject({ status: 'completed', output: { sent: true }, attempts: 1 })
  })
})
