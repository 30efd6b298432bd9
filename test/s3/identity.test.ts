/** A vanished store is not a new store. */
import { expect, onTestFinished, test } from 'vitest'
import { connect, silentLogger } from '../../src/index.ts'
import { KvStore } from '../../src/store/kv/store.ts'
import { checkIdentity, openIdentity, renewIdentity } from '../../src/store/s3/identity.ts'
import { FakeClock } from '../../src/testing/fake-clock.ts'
import { KeyValueMap, MemoryKeyValue } from '../kv/places/memory-key-value.ts'

test('a worker whose store was emptied or replaced stops, and writes nothing into the new one', async () => {
  for (const replaced of [false, true]) {
    const clock = new FakeClock()
    const map = new KeyValueMap()
    const kv = new MemoryKeyValue(map, { wall: () => clock.wall() })
    const identity = await openIdentity(kv, { create: true })
    const store = new KvStore(kv, {
      capabilities: [],
      leaseTtl: 30_000,
      timers: clock,
      checkIdentity: () => checkIdentity(kv, identity),
    })
    const client = await connect(store, { clock, random: clock.random, logger: silentLogger })
    onTestFinished(() => client.close())
    const worker = client.worker().handle('a', async () => null)
    const running = worker.run()
    const ended = running.then(
      () => null,
      (error: unknown) => error,
    )
    await clock.advance(10_000)
    map.entries.clear()
    if (replaced) await openIdentity(kv, { create: true })
    for (let second = 0; second < 90; second++) await clock.advance(1_000)
    expect(await ended).toMatchObject({ code: 'STORE_IDENTITY_CHANGED' })
    await expect(client.submit('a', 0)).rejects.toMatchObject({ code: 'STORE_IDENTITY_CHANGED' })
    expect([...map.entries.keys()].filter((key) => key.startsWith('tasks/'))).toEqual([])
  }
})

test('of several that make a store at once all get the same', async () => {
  const kv = new MemoryKeyValue()
  const identities = await Promise.all(Array.from({ length: 5 }, () => openIdentity(kv, { create: true })))
  expect(new Set(identities).size).toBe(1)
})

test('a store that was restored and accepted stops who knew it, and hands out no fence a second time', async () => {
  const kv = new MemoryKeyValue(new KeyValueMap())
  let identity = await openIdentity(kv, { create: true })
  const open = () => {
    const known = identity
    const store = new KvStore(kv, {
      capabilities: [],
      leaseTtl: 30_000,
      indexesEnded: true,
      checkIdentity: () => checkIdentity(kv, known),
      renewIdentity: async () => {
        identity = await renewIdentity(kv)
      },
    })
    return connect(store, { logger: silentLogger })
  }
  const client = await open()
  onTestFinished(() => client.close())
  const dead = async (): Promise<string> => {
    const { id } = await client.submit('a', 0, { maxRetries: 0 })
    await (await client.claim(id, { workerId: 'w' })).fail(new Error('no'))
    return id
  }
  const [failed, archived, completed] = [await dead(), await dead(), (await client.submit('a', 0)).id]
  await client.archive(archived)
  await (await client.claim(completed, { workerId: 'w' })).complete(1)
  const { id: pending } = await client.submit('a', 0)
  const { id: running } = await client.submit('a', 0)
  await client.claim(running, { workerId: 'w' })

  const before = identity
  expect(await client.acceptRestore()).toBe(4)
  await expect(checkIdentity(kv, before)).rejects.toMatchObject({ code: 'STORE_IDENTITY_CHANGED' })
  const attempts = async (id: string): Promise<number> => (await client.get(id)).attempts
  expect(await Promise.all([failed, archived, completed, pending, running].map(attempts))).toEqual([
    1_000_001, 1_000_001, 1, 1_000_000, 1_000_001,
  ])
  await client.deadLetters.replay(failed)
  expect((await client.claim(failed, { workerId: 'w' })).fence).toBe(1_000_002)
  expect((await client.list({ status: 'archived' })).tasks.map(({ id }) => id)).toEqual([archived])
})
