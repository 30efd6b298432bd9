/** `drain` for hosts that start a worker now and then: what it does before it ends, and that it ends in time. */
import { describe, expect, it } from 'vitest'
import { begin, gate, movesOf, refuses } from '../setup.ts'

const MINUTE = 60_000

describe('drain with schedules', () => {
  it('fires what is due, runs it, and ends', async () => {
    const { client, clock, passing } = await begin()
    await client.schedules.create({ id: 'report', type: 'report', input: 1, every: '1m' })
    await clock.advance(MINUTE + 1)
    const ran: unknown[] = []
    const drained = client
      .worker()
      .handle('report', (input) => void ran.push(input))
      .drain({ schedules: true })
    expect(await passing(drained)).toEqual({ timeIsOver: false })
    expect(ran).toEqual([1])
  })

  it('runs every missed slot one after another where none may overlap', async () => {
    const { client, clock, passing } = await begin()
    await client.schedules.create({
      id: 'report',
      type: 'report',
      input: 1,
      every: '1m',
      catchUp: 'all',
      overlap: 'skip',
    })
    await clock.advance(3 * MINUTE + 1)
    let runs = 0
    await passing(
      client
        .worker()
        .handle('report', () => void runs++)
        .drain({ schedules: true }),
    )
    expect(runs).toBe(3)
  })

  it('without them no schedule fires', async () => {
    const { client, clock, passing } = await begin()
    await client.schedules.create({ id: 'report', type: 'report', input: 1, every: '1m' })
    await clock.advance(MINUTE + 1)
    await passing(
      client
        .worker()
        .handle('report', () => null)
        .drain(),
    )
    expect((await client.list()).tasks).toEqual([])
  })

  it('expires, takes back lapsed leases, and removes what is not kept any longer', async () => {
    const { client, clock, passing } = await begin({ retention: { completed: '1s' } })
    const [late, lost, old] = await Promise.all([
      client.submit('a', 1, { ttl: '10s', queue: 'unserved' }),
      client.submit('a', 2, { queue: 'unserved' }),
      client.submit('a', 3),
    ])
    await client.claim(lost.id, { workerId: 'gone' })
    await (await client.claim(old.id, { workerId: 'gone' })).complete(null)
    await clock.advance(MINUTE)
    await passing(
      client
        .worker()
        .handle('a', () => null)
        .drain({ schedules: true }),
    )
    expect((await client.get(late.id)).status).toBe('expired')
    expect(movesOf(await client.get(lost.id))).toContain('lose-lease → pending')
    await refuses('TASK_NOT_FOUND')(client.get(old.id))
  })
})

describe('drain for a time', () => {
  it('claims nothing more after it, and lets running handlers finish', async () => {
    const { client, clock, passing } = await begin()
    const { opened, open } = gate()
    const [first, second] = await Promise.all([client.submit('slow', 1), client.submit('slow', 2)])
    const worker = client.worker({ concurrency: 1 }).handle('slow', () => opened)
    const drained = worker.drain({ for: '50s' })
    await clock.advance(49_000)
    expect((await client.get(first.id)).status).toBe('running')
    await clock.advance(2_000)
    open()
    expect(await passing(drained)).toEqual({ timeIsOver: true })
    expect((await client.get(first.id)).status).toBe('completed')
    expect((await client.get(second.id)).status).toBe('pending')
  })

  it('releases without a retry what does not finish within stopTimeout', async () => {
    const { client, clock, passing } = await begin()
    const task = await client.submit('endless', 1)
    const endless = (_: unknown, { signal }: { signal: AbortSignal }): Promise<never> =>
      new Promise((_, fail) => signal.addEventListener('abort', () => fail(signal.reason)))
    const drained = client.worker({ stopTimeout: '5s' }).handle('endless', endless).drain({ for: '50s' })
    await clock.advance(54_000)
    expect((await client.get(task.id)).status).toBe('running')
    expect(await passing(drained)).toEqual({ timeIsOver: true })
    expect(await client.get(task.id)).toMatchObject({ status: 'pending', retryCount: 0 })
  })

  it('ends early when there is nothing to do, or when it is stopped', async () => {
    const { client, clock, passing } = await begin()
    const before = clock.wall()
    const drain = () => client.worker({ stopTimeout: 0 }).handle('a', () => new Promise(() => {}))
    expect(await passing(drain().drain({ for: '50s', schedules: true }))).toEqual({ timeIsOver: false })
    expect(clock.wall() - before).toBeLessThan(5_000)
    await client.submit('a', 1)
    const worker = drain()
    const drained = worker.drain({ for: '50s', schedules: true })
    await clock.advance(1_000)
    await passing(worker.stop())
    expect(await passing(drained)).toEqual({ timeIsOver: false })
    expect(clock.wall() - before).toBeLessThan(10_000)
  })

  it('refuses what is not a time, and options that it does not have', async () => {
    const { client } = await begin()
    const worker = client.worker().handle('a', () => null)
    await refuses('INVALID_DURATION')(worker.drain({ for: '50' }))
    await refuses(
      'INVALID_OPTION',
      /schedule is not an option of drain: did you mean schedules/,
    )(worker.drain({ schedule: true } as never))
  })
})
