/** A store whose clock is not the host's: everything goes by the store's. */
import { describe, expect, it, onTestFinished } from 'vitest'
import { type Client, connect, silentLogger } from '../../src/index.ts'
import type { Clock } from '../../src/runtime/clock.ts'
import { openMemory } from '../../src/store/memory/store.ts'
import type { Store } from '../../src/store/store.ts'
import { FakeClock } from '../../src/testing/fake-clock.ts'
import { keptOpen, passing, refuses } from './setup.ts'

const HOUR = 3_600_000
const STORE_NOON = Date.UTC(2026, 5, 1, 12)

/** The store's clock shows noon. Each client's host shows what it likes, and both go equally fast. */
const begin = async () => {
  const clock = new FakeClock()
  const offset = STORE_NOON - clock.wall()
  const storeNow = (): number => clock.wall() + offset
  const memory = openMemory({ wall: storeNow })
  const clients: Client[] = []
  onTestFinished(async () => {
    for (const client of clients) await passing(clock, client.close(), 500)
    await memory.close()
  })
  const capabilities = new Set([...memory.capabilities].filter((one) => one !== 'host-clock'))
  const remote: Store = new Proxy(keptOpen(memory), {
    get: (target, name) => (name === 'capabilities' ? capabilities : Reflect.get(target, name)),
  })
  /** `skew`: how much the host is ahead of the store. */
  const hostOf = async (skew: number): Promise<Client> => {
    const host: Clock = {
      wall: () => storeNow() + skew,
      mono: () => clock.mono(),
      after: (delay, tick) => clock.after(delay, tick),
    }
    const client = await connect(remote, { clock: host, random: clock.random, logger: silentLogger, name: 'test' })
    clients.push(client)
    return client
  }
  return { clock, storeNow, hostOf }
}

describe.each([
  ['five hours behind', -5 * HOUR],
  ['five hours ahead', 5 * HOUR],
])('a host that is %s of its store', (_, skew) => {
  it('[S01] stamps, expires and leases by the clock of the store', async () => {
    const { clock, storeNow, hostOf } = await begin()
    const client = await hostOf(skew)
    expect(await client.now()).toBe(storeNow())
    const mortal = await client.submit('work', {}, { ttl: '10s' })
    const other = await client.submit('work', {}, { ttl: '10s' })
    expect([mortal.createdAt, mortal.expiresAt]).toEqual([STORE_NOON, STORE_NOON + 10_000])
    await clock.advance(9_000)
    const { task } = await client.claim(mortal.id, { workerId: 'w' })
    expect(task.lease).toMatchObject({ claimedAt: STORE_NOON + 9_000, expiresAt: STORE_NOON + 14_000 })
    await clock.advance(1_000)
    await refuses('TASK_EXPIRED')(client.claim(other.id, { workerId: 'w' }))
    expect(await client.get(other.id)).toMatchObject({ status: 'expired', expiredAt: STORE_NOON + 10_000 })
  })

  it('[S01] neither ends what others have submitted too early, nor runs it too early', async () => {
    const { clock, hostOf } = await begin()
    const exact = await hostOf(0)
    const skewed = await hostOf(skew)
    const ran: unknown[] = []
    skewed
      .worker()
      .handle('work', (input) => void ran.push(input))
      .start()
    const mortal = await exact.submit('other', 'nobody handles it', { ttl: '1h' })
    await exact.submit('work', 'later', { delay: '1h' })
    await clock.advance(HOUR - 2_000)
    expect([(await exact.get(mortal.id)).status, ran]).toEqual(['pending', []])
    await clock.advance(5_000)
    expect([(await exact.get(mortal.id)).status, ran]).toEqual(['expired', ['later']])
  })

  it('[M05] fires a schedule when the clock of the store shows its slot', async () => {
    const { clock, hostOf } = await begin()
    const client = await hostOf(skew)
    client.monitor().start()
    const schedule = await client.schedules.create({ id: 'tick', type: 'tick', input: 1, cron: '30 * * * *' })
    expect(schedule.nextAt).toBe(STORE_NOON + HOUR / 2)
    await clock.advance(HOUR / 2 - 1)
    expect((await client.list()).tasks).toEqual([])
    await clock.advance(3_000)
    const { tasks } = await client.list()
    expect(tasks).toHaveLength(1)
    expect(tasks[0]!.idempotencyKey).toMatch(/2026-06-01T12:30:00\.000Z$/)
  })
})
