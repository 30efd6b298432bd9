/** Time is the server's: a client whose own clock is an hour off starts nothing early, expires nothing early, takes no lease early. */
import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { type Client, connect, silentLogger } from '../../src/index.ts'
import { type Clock, systemClock } from '../../src/runtime/clock.ts'
import { openPostgres } from '../../src/store/postgres/store.ts'
import type { Store } from '../../src/store/store.ts'
import { begin, onPostgres } from './setup.ts'

const HOUR = 3_600_000

/** A host whose wall clock is wrong; its elapsed time is right. */
const wrong = (offset: number): Clock => ({ ...systemClock, wall: () => Date.now() + offset })

/** The planted bug: the host's idea of now, handed to the store instead of asking the store. */
const trustsTheHost = (store: Store, clock: Clock): Store =>
  new Proxy(store, {
    get(target, name) {
      if (name === 'now') return async () => ({ at: clock.wall(), uncertainty: 0 })
      if (name === 'claim') return (want: Parameters<Store['claim']>[0]) => target.claim({ ...want, now: clock.wall() })
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })

/** What two workers of the skewed client make of three tasks, while an honest one holds a lease. */
const watch = async (honest: Client, skewed: Client) => {
  const started: string[] = []
  const soon = await honest.submit('later', null, { delay: '1500ms' })
  const mortal = await honest.submit('other', null, { ttl: '30m' })
  const held = await honest.submit('held', null)
  const lease = await honest.claim(held.id, { workerId: 'honest', leaseTtl: '20s' })
  const submittedAt = Date.parse(soon.toJSON()['createdAt'] as string)
  const worker = skewed.worker({ pollInterval: '50ms' })
  for (const type of ['later', 'held'])
    worker.handle(type, async () => void started.push(`${type} after ${(await honest.now()) - submittedAt >= 1_500}`))
  worker.start()
  await pause(1_000)
  const early = [...started]
  const taken = (await honest.get(held.id)).attempts > 1
  const expired = (await honest.get(mortal.id)).status === 'expired'
  await honest.waitForEnd(soon, { timeout: '10s' }).catch(() => {})
  if (!taken) await lease.complete('mine')
  const mine = await skewed.submit('mine', null, { delay: '1h' })
  return { early, started, taken, expired, createdAt: Date.parse(mine.toJSON()['createdAt'] as string) }
}

onPostgres('a client whose clock is wrong', (url) => {
  describe.each([
    ['an hour ahead', HOUR],
    ['an hour behind', -HOUR],
  ])('%s', (_, offset) => {
    test('goes by the server', async () => {
      const { connect: open } = begin(url)
      const honest = await open()
      const skewed = await open({ clock: wrong(offset) })
      const before = await honest.now()
      const { early, started, taken, expired, createdAt } = await watch(honest, skewed)
      expect({ early, taken, expired }).toEqual({ early: [], taken: false, expired: false })
      expect(started).toEqual(['later after true'])
      expect(createdAt - before).toBeGreaterThanOrEqual(0)
      expect(createdAt - before).toBeLessThan(60_000)
    })
  })

  test('would be noticed if it went by itself', async () => {
    const { schema, connect: open } = begin(url)
    const honest = await open()
    const clock = wrong(HOUR)
    const store = await openPostgres(url, { schema })
    await using skewed = await connect(trustsTheHost(store, clock), { clock, logger: silentLogger })
    const { early, taken, expired } = await watch(honest, skewed)
    expect({ early: early.length > 0, taken, expired }).toEqual({ early: true, taken: true, expired: true })
  })
})
