/** Time is the server's: a client whose own clock is an hour off starts nothing early, expires nothing early, takes no lease early. */
import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import { describe, expect, onTestFinished, test } from 'vitest'
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
    // The lease is not taken even so: that needs a lease length of contact.
    const { early, expired } = await watch(honest, skewed)
    expect({ early: early.length > 0, expired }).toEqual({ early: true, expired: true })
  })
})

/** A connection of the application's own. */
const callerOf = async (url: string): Promise<pg.Client & AsyncDisposable> => {
  const client = new pg.Client(url)
  await client.connect()
  return Object.assign(client, { [Symbol.asyncDispose]: () => client.end() })
}

/** A server whose clock can be set: the function that its sessions find first adds what a table says. */
const settable = async (url: string, sql: (...statements: string[]) => Promise<unknown>, schema: string) => {
  const clock = `${schema}_clock`
  await sql(
    `create schema ${clock}`,
    `create table ${clock}.off (by interval not null)`,
    `insert into ${clock}.off values ('0')`,
    `create function ${clock}.clock_timestamp() returns timestamptz language sql volatile as 'select pg_catalog.clock_timestamp() + by from ${clock}.off'`,
  )
  onTestFinished(async () => void (await sql(`drop schema if exists ${clock} cascade`)))
  const through = new URL(url)
  through.searchParams.set('options', `-c search_path=${clock},pg_catalog`)
  return {
    through: through.href,
    set: (by: string): Promise<unknown> => sql(`update ${clock}.off set by = '${by}'`),
  }
}

onPostgres("a server's clock that is set while a producer is connected", (url) => {
  test.each(['10 minutes', '-10 minutes'])('by %s counts from the next submit on', async (by) => {
    const { schema, sql, connect: open } = begin(url)
    const { through, set } = await settable(url, sql, schema)
    // Without prepared statements a session keeps the search path of its address.
    const producer = await open({ through, postgres: { prepare: false, listen: false } })
    const server = async (): Promise<number> => producer.now()
    await producer.submit('before', null)
    await set(by)
    const submitted = [
      await producer.submit('plain', null, { ttl: '1m' }),
      await producer.submit('keyed', null, { ttl: '1m', idempotencyKey: 'k', idempotencyTtl: '1h' }),
      ...(
        await producer.submitMany(
          [1, 2].map((input) => ({ type: 'many', input })),
          { ttl: '1m' },
        )
      ).map((one) => (one.ok ? one.task : null)),
    ]
    const now = await server()
    for (const task of submitted) {
      const stored = await producer.get(task!.id)
      expect(Math.abs(stored.createdAt - now)).toBeLessThan(5_000)
      expect(stored.availableAt).toBeLessThanOrEqual(now)
      expect(Math.abs(stored.expiresAt! - now - 60_000)).toBeLessThan(5_000)
      expect(task!.expiresAt, 'the caller is told what is stored').toBe(stored.expiresAt)
    }
    const [key] = await sql(`select expires_at from ${schema}.key where key = 'k'`)
    expect(Math.abs(Number(key!['expires_at']) - now - 3_600_000)).toBeLessThan(5_000)
  })

  test('counts inside the caller’s own transaction too', async () => {
    const { schema, sql, connect: open } = begin(url)
    const { through, set } = await settable(url, sql, schema)
    const producer = await open({ through, postgres: { prepare: false, listen: false } })
    await using caller = await callerOf(through)
    await set('-10 minutes')
    await caller.query('begin')
    const task = await producer.submit('plain', null, { tx: caller })
    await caller.query('commit')
    const stored = await producer.get(task.id)
    expect(stored.availableAt).toBeLessThanOrEqual(await producer.now())
    expect(task.availableAt).toBe(stored.availableAt)
  })
})

onPostgres('a host that slept', (url) => {
  test.each([
    ['whose elapsed time stood still', -600_000],
    ['whose elapsed time ran ahead', 600_000],
  ])('%s asks the server before it stamps', async (_, by) => {
    const { connect: open } = begin(url)
    let jump = 0
    const clock: Clock = { ...systemClock, mono: () => systemClock.mono() + jump }
    const producer = await open({ clock })
    jump = by
    const task = await producer.submit('plain', null, { ttl: '1m' })
    await producer.cancel(task.id)
    const { createdAt, updatedAt } = await producer.get(task.id)
    const now = await producer.now()
    expect(Math.abs(createdAt - now)).toBeLessThan(5_000)
    expect(Math.abs(updatedAt - now)).toBeLessThan(5_000)
  })
})
