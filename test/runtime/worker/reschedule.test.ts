import { describe, expect, it } from 'vitest'
import { type Handler, RescheduleError } from '../../../src/index.ts'
import { drain } from '../../../src/testing/drain.ts'
import { begin, shown } from '../setup.ts'

const answer = (headers: Record<string, string>): Response => new Response(null, { status: 429, headers })

describe('[AA3] durable sleep', () => {
  it('[I01][I02][I03][C09][A11] a thrown RescheduleError puts the task back and frees the slot at once', async () => {
    const { client, clock } = await begin()
    const order: string[] = []
    client
      .worker({ concurrency: 1 })
      .handle('slow', (_, ctx) => {
        order.push(`slow ${ctx.attempt}`)
        if (ctx.attempt === 1) throw new RescheduleError('60s')
      })
      .handle('quick', () => {
        order.push('quick')
      })
      .start()
    const { id } = await client.submit('slow', {})
    await client.submit('quick', {})
    await clock.settle()
    const asleep = await client.get(id)
    expect(shown(asleep)).toMatchObject({
      status: 'pending',
      rescheduleCount: 1,
      retryCount: 0,
      lease: null,
      lastError: null,
    })
    expect(asleep.availableAt).toBe(clock.wall() + 60_000)
    expect(order, '[N03] the worker did not wait').toEqual(['slow 1', 'quick'])
    await clock.advance(59_999)
    expect(order).toHaveLength(2)
    await clock.advance(1)
    expect(order).toEqual(['slow 1', 'quick', 'slow 2'])
    expect((await client.get(id)).status).toBe('completed')
  })

  it('may be returned instead: return ctx.reschedule(...)', async () => {
    const { client, clock } = await begin()
    client
      .worker()
      .handle('slow', (_, ctx) => (ctx.attempt === 1 ? ctx.reschedule('5m') : 'done'))
      .start()
    const { id } = await client.submit('slow', {})
    await clock.advance(300_000)
    expect(shown(await client.get(id))).toMatchObject({ status: 'completed', output: 'done', rescheduleCount: 1 })
  })

  it('[I05][C10][A12][A13] at the limit the next one fails the task with the exact words, and the count stays', async () => {
    const { client, clock } = await begin()
    client
      .worker()
      .handle('slow', () => {
        throw new RescheduleError('1s')
      })
      .start()
    const { id } = await client.submit('slow', {}, { maxReschedules: 3 })
    await clock.advance(60_000)
    const task = await client.get(id)
    expect(shown(task)).toMatchObject({
      status: 'failed',
      rescheduleCount: 3,
      maxReschedules: 3,
      attempts: 4,
      retryCount: 0,
    })
    expect(task.lastError?.message).toBe('Max reschedules (3) exceeded')
  })

  it('[I05] maxReschedules 0 allows none; unlimited is the default', async () => {
    const { client, clock } = await begin()
    client
      .worker()
      .handle('slow', (_, ctx) => {
        if (ctx.attempt <= 150) throw new RescheduleError('1s')
      })
      .start()
    const none = await client.submit('slow', {}, { maxReschedules: 0 })
    const unlimited = await client.submit('slow', {})
    await clock.advance(200_000)
    expect((await client.get(none.id)).lastError?.message).toBe('Max reschedules (0) exceeded')
    const task = await client.get(unlimited.id)
    expect(shown(task)).toMatchObject({
      status: 'completed',
      rescheduleCount: 150,
      attempts: 151,
      maxReschedules: null,
    })
    expect(task.history, 'the first entry and the last 99 are kept').toHaveLength(100)
    expect(task.history.map(({ n }) => n)).toEqual([1, ...Array.from({ length: 99 }, (_, i) => task.revision - 98 + i)])
  })

  it('[I06][P05] a delay of 0 goes to the back of the queue', async () => {
    const { client, clock } = await begin()
    const order: string[] = []
    const { id } = await client.submit('yielding', 'a')
    await clock.advance(1)
    await client.submit('yielding', 'b')
    await clock.advance(1)
    client
      .worker({ concurrency: 1 })
      .handle('yielding', (input, ctx) => {
        order.push(`${String(input)}${ctx.attempt}`)
        if (input === 'a' && ctx.attempt === 1) throw new RescheduleError(0)
      })
      .start()
    await clock.advance(10)
    expect(order).toEqual(['a1', 'b1', 'a2'])
    expect((await client.get(id)).rescheduleCount).toBe(1)
  })

  it('[I07][I09] a day is fine, and no timeout runs meanwhile', async () => {
    const { client, clock } = await begin()
    const { id, createdAt } = await client.submit('slow', {}, { timeout: '1s' })
    const slow: Handler = (_, ctx) => (ctx.attempt === 1 ? ctx.reschedule({ seconds: 86_400 }) : 'done')
    await drain(client, { slow }, { clock })
    expect(clock.wall()).toBe(createdAt + 86_400_000)
    expect(shown(await client.get(id))).toMatchObject({ status: 'completed', attempts: 2, retryCount: 0 })
  })

  it('[I08] reschedules and retries are counted apart, in any order', async () => {
    const { client, clock } = await begin({ random: () => 0 })
    client
      .worker()
      .handle('slow', (_, ctx) => {
        if (ctx.attempt % 2 === 1) throw new RescheduleError('1s')
        throw new Error('no')
      })
      .start()
    const { id } = await client.submit('slow', {}, { maxRetries: 2, maxReschedules: 10 })
    await clock.advance(60_000)
    expect(shown(await client.get(id))).toMatchObject({
      status: 'failed',
      attempts: 6,
      retryCount: 2,
      rescheduleCount: 3,
    })
  })

  it('[I12] extendExpiration adds to an expiry that is there, and does nothing where there is none', async () => {
    const { client, clock } = await begin()
    client
      .worker()
      .handle('slow', (_, ctx) => {
        if (ctx.attempt === 1) throw new RescheduleError('60s', { extendExpiration: '2m' })
      })
      .start()
    const mortal = await client.submit('slow', {}, { ttl: '30s' })
    const immortal = await client.submit('slow', {})
    await clock.settle()
    expect((await client.get(mortal.id)).expiresAt).toBe(mortal.expiresAt! + 120_000)
    expect((await client.get(immortal.id)).expiresAt).toBeNull()
    await clock.advance(60_000)
    expect((await client.get(mortal.id)).status).toBe('completed')
  })

  it('[J12] without it, a sleep past the expiry simply expires', async () => {
    const { client, clock } = await begin()
    client
      .worker()
      .handle('slow', () => {
        throw new RescheduleError('60s')
      })
      .start()
    const { id } = await client.submit('slow', {}, { ttl: '30s' })
    await clock.advance(90_000)
    expect(shown(await client.get(id))).toMatchObject({ status: 'expired', attempts: 1, rescheduleCount: 1 })
  })
})

describe('RescheduleError.after', () => {
  it('a Retry-After of more than a century is one of a century, and one long past is now', () => {
    const century = 36_525 * 86_400_000
    const far = 'Fri, 31 Dec 9999 23:59:59 GMT'
    const date = 'Wed, 28 Jan 2026 17:00:00 GMT'
    expect(RescheduleError.after(answer({ 'retry-after': far, date })).delay).toBe(century)
    expect(RescheduleError.after(answer({ 'retry-after': far })).at).toBe(Date.parse(far))
    expect(RescheduleError.after(answer({ 'retry-after': 'Thu, 01 Jan 1970 00:00:00 GMT' })).at).toBeNull()
    expect(RescheduleError.after(answer({ 'retry-after': 'Thu, 01 Jan 1970 00:00:00 GMT', date })).delay).toBe(0)
  })

  it('[I13] takes the seconds of Retry-After', () => {
    expect(RescheduleError.after(answer({ 'retry-after': '120' })).delay).toBe(120_000)
    expect(RescheduleError.after(answer({ 'retry-after': '0' })).delay).toBe(0)
  })

  it('takes a date, measured by the server’s own clock where it says what that shows', () => {
    const headers = { 'retry-after': 'Wed, 28 Jan 2026 17:00:30 GMT', date: 'Wed, 28 Jan 2026 17:00:00 GMT' }
    expect(RescheduleError.after(answer(headers)).delay).toBe(30_000)
    expect(RescheduleError.after(answer({ 'retry-after': headers['retry-after'] })).at).toBe(
      Date.UTC(2026, 0, 28, 17, 0, 30),
    )
    expect(
      RescheduleError.after(answer({ ...headers, 'retry-after': 'Wed, 28 Jan 2026 16:00:00 GMT' })).delay,
      'in the past: now',
    ).toBe(0)
  })

  it('[I11] falls back when the header is missing or nonsense: 60 s, or what it is told', () => {
    expect(RescheduleError.after(answer({})).delay).toBe(60_000)
    expect(RescheduleError.after(answer({}), '5m').delay).toBe(300_000)
    for (const nonsense of ['soon', '-5', '1.5', '', '99999999999999'])
      expect(RescheduleError.after(answer({ 'retry-after': nonsense }), '7s').delay, nonsense).toBe(7_000)
  })

  it('reaches the task: a date in a handler’s answer becomes its availableAt', async () => {
    const { client, clock } = await begin()
    const at = new Date(clock.wall() + 90_000)
    client
      .worker()
      .handle('call', () => {
        throw RescheduleError.after(answer({ 'retry-after': at.toUTCString() }))
      })
      .start()
    const { id } = await client.submit('call', {})
    await clock.settle()
    expect((await client.get(id)).availableAt).toBe(at.getTime())
  })
})
