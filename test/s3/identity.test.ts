/** A vanished store is not a new store. */
import { expect, onTestFinished, test } from 'vitest'
import { connect, silentLogger } from '../../src/index.ts'
import { KvStore } from '../../src/store/kv/store.ts'
import { checkIdentity, openIdentity } from '../../src/store/s3/identity.ts'
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
