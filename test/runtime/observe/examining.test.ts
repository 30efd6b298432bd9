/** What an examination finds in a store and among those who use it. */
import { describe, expect, it } from 'vitest'
import type { Client, Finding } from '../../../src/index.ts'
import { begin } from '../setup.ts'

const findings = async (client: Client, check: Finding['check']): Promise<[string, string][]> =>
  (await client.examine()).filter((one) => one.check === check).map(({ verdict, found }) => [verdict, found])

const register = (version: string, at: number): string =>
  JSON.stringify({
    types: ['mail'],
    queues: ['default'],
    concurrency: 1,
    version,
    host: 'elsewhere',
    pid: 1,
    startedAt: new Date(at).toISOString(),
    beatAt: new Date(at).toISOString(),
  })

describe('an examination', () => {
  it('of a store in which nothing is amiss finds nothing amiss', async () => {
    const { client } = await begin()
    expect((await client.examine()).every(({ verdict }) => verdict === 'ok')).toBe(true)
  })

  it('finds a paused queue in which tasks wait, and types that nobody handles', async () => {
    const { client, clock, store } = await begin()
    await client.submit('mail', 1)
    await client.submit('report', 1)
    await client.submit('late', 1, { queue: 'held', delay: '1h' })
    await client.queue('held').pause()
    await store.documents.put('worker/w', register('1.0.0', clock.wall()), 0)
    expect(await findings(client, 'queue')).toEqual([
      ['warning', "queue 'default': 2 tasks wait, and no live worker serves it with a handler for 'report'"],
      ['ok', "queue 'held' is paused and empty"],
    ])
    await client.submit('now', 1, { queue: 'held' })
    expect((await findings(client, 'queue'))[1]).toEqual(['warning', "queue 'held' is paused, and 1 task waits in it"])
  })

  it('finds a paused group in which tasks wait, and a queue that has been at its limit for long', async () => {
    const { client, clock, store } = await begin()
    await client.queue('default').limit({ concurrency: 1 })
    await client.queue('default').pause({ group: 'acme' })
    await client.submit('mail', 1)
    await client.submit('mail', 2)
    await client.submit('mail', 3, { group: 'acme' })
    await client.claimNext({ workerId: 'w', leaseTtl: '1h' })
    await clock.advance(240_000)
    await store.documents.put('worker/w', register('1.0.0', clock.wall()), 0)
    expect(await findings(client, 'queue')).toEqual([['ok', "queue 'default': 2 tasks wait"]])
    expect(await findings(client, 'paused-group')).toEqual([
      ['warning', "group 'acme' of queue 'default' is paused, and 1 task waits in it"],
    ])
    await clock.advance(120_000)
    await store.documents.put('worker/w2', register('1.0.0', clock.wall()), 0)
    expect(await findings(client, 'queue')).toEqual([
      ['warning', "queue 'default' is at its limit (1 of 1 running), and 2 tasks wait, the first of them for 6m"],
    ])
    await client.queue('default').limit({ concurrency: 2 })
    expect(await findings(client, 'queue')).toEqual([['ok', "queue 'default': 2 tasks wait"]])
  })

  it('finds live workers with different versions, and leaves out those that are gone', async () => {
    const { client, clock, store } = await begin()
    await store.documents.put('worker/old', register('1.0.0', clock.wall()), 0)
    await clock.advance(20_000)
    await store.documents.put('worker/new', register('1.1.0', clock.wall()), 0)
    expect((await findings(client, 'workers'))[0]![0]).toBe('warning')
    await clock.advance(20_000)
    expect(await findings(client, 'workers')).toEqual([['ok', 'live workers: 1 with 1.1.0']])
  })

  it('finds leases that lapsed and were not taken back', async () => {
    const { client, clock } = await begin()
    const { id } = await client.submit('mail', 1)
    await client.claim(id, { workerId: 'w', leaseTtl: '5s' })
    await clock.advance(30_000)
    expect((await findings(client, 'leases'))[0]![0]).toBe('ok')
    await clock.advance(30_000)
    expect((await findings(client, 'leases'))[0]![0]).toBe('problem')
  })

  it('finds schedules that stand still or cannot be read, but not paused and deleted ones, nor one that waits for its run', async () => {
    const { client, clock, store } = await begin()
    const wish = { type: 'mail', input: 1, every: '5m' } as const
    for (const id of ['due', 'paused', 'deleted']) await client.schedules.create({ id, ...wish })
    await client.schedules.create({ id: 'slow', ...wish, mode: 'fixed-delay' })
    const { id: running } = await client.schedules.trigger('slow')
    await client.claim(running, { workerId: 'w', leaseTtl: '1h' })
    await client.schedules.pause('paused')
    await client.schedules.delete('deleted')
    await store.documents.put('schedule/broken', '{', 0)
    await clock.advance(300_000)
    expect((await findings(client, 'schedule')).map(([verdict]) => verdict)).toEqual(['problem', 'ok', 'ok', 'ok'])
    await clock.advance(120_000)
    expect(await findings(client, 'schedule')).toEqual([
      ['problem', "schedule 'broken' cannot be read"],
      ['problem', "schedule 'due' should have fired 2m ago; no worker is alive to fire it"],
      ['ok', "schedule 'paused' is on time"],
      ['ok', "schedule 'slow' is on time"],
    ])
  })
})
