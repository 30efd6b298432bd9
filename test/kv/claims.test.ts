/** Claims where other processes have taken most of the tasks. */
import { expect, onTestFinished, test } from 'vitest'
import { complete } from '../../src/core/machine.ts'
import { KvStore } from '../../src/store/kv/store.ts'
import { claimOne, ids, idsOf, insert, NOW, task, want } from '../../src/testing/conformance/build.ts'
import { openKvInMemory } from './open.ts'
import { CountingKeyValue } from './places/counting-key-value.ts'
import { KeyValueMap, MemoryKeyValue } from './places/memory-key-value.ts'
import { begin } from './setup.ts'

const TASKS = 1_000

test('a claim from a list of which others have ended nearly all reads a bounded number of tasks', async () => {
  const { clock, open } = begin()
  const [one, other] = [await open(), await open()]
  for (let n = 0; n < TASKS; n++) await one.client.submit('email', n)
  // Lists, and keeps the rest of the list for the next claim.
  const look = { now: null, leaseTtl: 30_000, dueLimit: 0 }
  expect((await one.store.claim(want({ ...look, limit: 1 }))).leased).toHaveLength(1)
  const { leased } = await other.store.claim(want({ ...look, limit: TASKS - 20, op: 'other' }))
  expect(leased.length).toBeGreaterThan(TASKS / 2)
  const now = clock.wall()
  const changes = leased.map((task) =>
    complete(task, { token: task.lease!.token }, { text: 'null', encoding: 'json' }, now),
  )
  expect(new Set(await other.store.commit(changes))).toEqual(new Set(['written']))
  one.kv.take()
  await one.store.claim(want({ ...look, limit: 10, op: 'again' }))
  expect(one.kv.take()['GET']).toBeLessThanOrEqual(70)
})

test('what a claim has leased is delivered though one of its requests hangs', async () => {
  const hangs = Promise.withResolvers<void>()
  const { map, open } = begin()
  const { client } = await open()
  const tasks = await Promise.all(Array.from({ length: 5 }, () => client.submit('email', null)))
  class Hanging extends MemoryKeyValue {
    override async get(key: string) {
      if (key.includes(tasks[2]!.id)) await hangs.promise
      return super.get(key)
    }
  }
  const kv = new CountingKeyValue(new Hanging(map))
  const store = new KvStore(kv, { capabilities: [], leaseTtl: 30_000 })
  const { leased } = await store.claim(want({ limit: 5, now: null, leaseTtl: 30_000 }))
  expect(leased.map(({ id }) => id)).toEqual(tasks.filter((_, n) => n !== 2).map(({ id }) => id))
  kv.take()
  // The lease that comes too late is released, without charging a retry.
  hangs.resolve()
  await expect.poll(async () => (await client.get(tasks[2]!.id))?.history.map(({ move }) => move)).toContain('release')
  expect(await client.get(tasks[2]!.id)).toMatchObject({ status: 'pending', retryCount: 0 })
  await store.close()
})

test('a claim reports what is overdue although its leases are written first', async () => {
  const map = new KeyValueMap()
  class SlowToRead extends MemoryKeyValue {
    slow: string | null = null
    override async get(key: string) {
      if (this.slow !== null && key.includes(this.slow)) await new Promise((done) => setTimeout(done, 50))
      return super.get(key)
    }
  }
  const kv = new SlowToRead(map)
  const one = openKvInMemory(kv)
  const other = openKvInMemory(new MemoryKeyValue(map))
  onTestFinished(async () => {
    await one.close()
    await other.close()
  })
  await insert(one, task(1), task(2))
  const renewed = await claimOne(one, { limit: 1, leaseTtl: 100 })
  const lapsed = await claimOne(one, { limit: 1, leaseTtl: 150, op: 'second' })
  // `one` does not know: it reads this task first, and only then the other.
  await other.renew([{ id: renewed.id, token: renewed.lease!.token, leaseTtl: 60_000 }], NOW)
  await insert(one, task(3))
  kv.slow = renewed.id
  const { leased, due } = await one.claim(want({ now: NOW + 200, limit: 1, dueLimit: 1 }))
  expect(idsOf(leased)).toEqual(ids(3))
  expect(idsOf(due)).toEqual([lapsed.id])
})
