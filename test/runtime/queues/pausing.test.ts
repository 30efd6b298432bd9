/** Pauses that end by themselves, and pauses that a task asks for. */
import { describe, expect, it } from 'vitest'
import { type Pause, strongerPause } from '../../../src/core/flow/pause.ts'
import { PAUSE } from '../../../src/core/storage/document-names.ts'
import { connect, RescheduleError, silentLogger } from '../../../src/index.ts'
import { openMemory } from '../../../src/store/memory/store.ts'
import { FakeClock } from '../../../src/testing/index.ts'
import { begin, refuses } from '../setup.ts'

const NOW = Date.parse('2026-01-28T17:00:00Z')
const pause = (until: string | null): Pause => ({ at: '', by: '', ...(until === null ? null : { until }) })

describe('of two pauses', () => {
  const [soon, late, over] = ['2026-01-28T18:00:00Z', '2026-01-28T19:00:00Z', '2026-01-28T16:00:00Z'].map(pause)
  const endless = pause(null)

  it.each([
    ['the one without an end stands, whichever came first', endless, soon, endless],
    ['the one without an end stands, whichever came last', soon, endless, endless],
    ['the later end stands, whichever came first', late, soon, late],
    ['the later end stands, whichever came last', soon, late, late],
    ['one that is over is ignored', over, soon, soon],
  ])('%s', (_, before, wanted, stands) => {
    expect(strongerPause(before!, wanted!, NOW)).toEqual(stands)
  })

  it('one of a move stays until the move has ended, and is kept afterwards', () => {
    const held: Pause = { at: 'then', by: 'mover', move: { id: '1', from: 'x', keep: false } }
    expect(strongerPause(held, soon!, NOW)).toEqual({ ...soon, at: 'then', move: { id: '1', from: 'x', keep: true } })
  })
})

describe('a pause with an end', () => {
  it('stops claims until then, shows its end, and is swept when it is over', async () => {
    const clock = new FakeClock()
    const store = openMemory({ wall: () => clock.wall() })
    const client = await connect(store, { clock, random: clock.random, logger: silentLogger })
    const { id } = await client.submit('work', null)
    const until = clock.wall() + 60_000
    await client.queue('default').pause({ until, reason: 'the provider is down' })
    expect(await client.claimNext({ workerId: 'w' })).toBeNull()
    expect(await client.queue('default').isPaused()).toBe(true)
    expect(await client.stats()).toMatchObject([{ queue: 'default', paused: true, pausedUntil: until }])
    expect(await client.why(id)).toMatchObject({
      reason: 'queue-paused',
      sentence: expect.stringMatching(/paused until /),
    })
    await refuses('QUEUE_PAUSED')(client.claim(id, { workerId: 'w' }))

    await clock.advance(60_000)
    expect(await client.queue('default').isPaused()).toBe(false)
    expect(await client.stats()).toMatchObject([{ paused: false, pausedUntil: null }])
    expect((await client.claimNext({ workerId: 'w' }))?.task.id).toBe(id)

    await clock.advance(120_000)
    await client.stats()
    await clock.settle()
    expect(await store.documents.list(PAUSE)).toEqual([])
    await client.close()
  })

  it('lets a worker go on by itself', async () => {
    const { client, clock } = await begin()
    await client.queue('default').pause({ until: clock.wall() + 60_000 })
    const { id } = await client.submit('work', null)
    client
      .worker()
      .handle('work', () => 'done')
      .start()
    await clock.advance(59_000)
    expect((await client.get(id)).status).toBe('pending')
    await clock.advance(6_000)
    expect((await client.get(id)).status).toBe('completed')
    await client.close()
  })

  it('can be resumed earlier', async () => {
    const { client, clock } = await begin()
    await client.submit('work', null)
    await client.queue('default').pause({ until: clock.wall() + 60_000 })
    await client.queue('default').resume()
    expect(await client.claimNext({ workerId: 'w' })).not.toBeNull()
  })

  it('refuses an option that it does not know, and an end that is no instant', async () => {
    const { client } = await begin()
    await refuses('INVALID_OPTION', 'did you mean until?')(client.queue('default').pause({ untill: 1 } as object))
    await refuses('INVALID_OPTION', 'until')(client.queue('default').pause({ until: 'tomorrow' }))
  })
})

describe('a reschedule that pauses its queue', () => {
  const answer = (retryAfter: string) => ({ headers: new Headers({ 'retry-after': retryAfter }) })

  it('stops the whole queue until the task is due: one answer 429 stops everybody', async () => {
    const { client, clock } = await begin()
    const calls: number[] = []
    let isBusy = true
    client
      .worker({ concurrency: 1 })
      .handle('call', () => {
        calls.push(clock.wall())
        if (isBusy) throw RescheduleError.after(answer('120'), '60s', { pause: 'queue' })
        return 'ok'
      })
      .start()
    const began = clock.wall()
    await client.submitMany(Array.from({ length: 5 }, () => ({ type: 'call', input: null })))
    await clock.settle()
    expect(calls).toHaveLength(1)
    expect(await client.stats()).toMatchObject([{ paused: true, pausedUntil: began + 120_000 }])
    isBusy = false
    await clock.advance(119_000)
    expect(calls).toHaveLength(1)
    await clock.advance(10_000)
    expect(calls).toHaveLength(6)
    expect((await client.count({ status: 'completed' })).count).toBe(5)
    await client.close()
  })

  it('pauses for 24 hours at most', async () => {
    const { client, clock } = await begin()
    const { id } = await client.submit('call', null)
    const lease = await client.claim(id, { workerId: 'w' })
    const task = await lease.reschedule('30d', { pause: 'queue' })
    expect(task.availableAt - clock.wall()).toBe(30 * 86_400_000)
    expect(await client.stats()).toMatchObject([{ paused: true, pausedUntil: clock.wall() + 86_400_000 }])
  })

  it('does not shorten a pause of an operator', async () => {
    const { client } = await begin()
    const { id } = await client.submit('call', null)
    const lease = await client.claim(id, { workerId: 'w' })
    await client.queue('default').pause({ reason: 'maintenance' })
    await lease.reschedule('1s', { pause: 'queue' })
    expect(await client.stats()).toMatchObject([{ paused: true, pausedUntil: null }])
  })

  it('refuses what cannot be paused', () => {
    expect(() => new RescheduleError('1s', { pause: 'all' as 'queue' })).toThrow("pause must be 'queue'")
  })
})

describe('a resume', () => {
  it('that another process overtakes is tried again until the pause is gone', async () => {
    const { client, another, store } = await begin()
    await client.queue('default').pause()
    let overtakes = 2
    const late = await another({
      through: (one) =>
        new Proxy(one, {
          get: (target, name) => {
            if (name !== 'documents') return Reflect.get(target, name)
            const remove: typeof target.documents.delete = async (document, version) => {
              // Between its read and its write another process writes the same document.
              if (document.startsWith(PAUSE) && overtakes-- > 0) {
                const there = (await store.documents.get(document))!
                await store.documents.put(document, there.value, there.version)
              }
              return target.documents.delete(document, version)
            }
            return { ...target.documents, delete: remove }
          },
        }),
    })
    await late.queue('default').resume()
    expect(overtakes).toBeLessThan(0)
    expect(await client.queue('default').isPaused()).toBe(false)
    expect(await store.documents.list(PAUSE)).toEqual([])
  })
})

describe('a store that wakes everybody for an unknown reason', () => {
  it('makes a worker read the pauses before it claims', async () => {
    let wakeAll = (): void => {}
    const { client, clock, another } = await begin()
    const far = await another({
      through: (store) =>
        new Proxy(store, {
          get: (target, name) => {
            // Like a store whose connection was lost: what happened meanwhile is not known.
            if (name === 'wake')
              return (listener: Parameters<typeof target.wake>[0]) => {
                wakeAll = () => listener(null)
                return () => {}
              }
            return Reflect.get(target, name)
          },
        }),
    })
    const ran: unknown[] = []
    far
      .worker({ scheduler: false, pollInterval: '1h' })
      .handle('work', (input) => void ran.push(input))
      .start()
    await clock.advance(100)
    await client.queue('default').pause()
    await client.submit('work', 1)
    wakeAll()
    await clock.settle()
    expect(ran).toEqual([])
    await client.queue('default').resume()
    wakeAll()
    await clock.settle()
    expect(ran).toEqual([1])
  })
})
