/** Claims where other processes have taken most of the tasks. */
import { expect, test } from 'vitest'
import { complete } from '../../src/core/machine.ts'
import { KvStore } from '../../src/store/kv/store.ts'
import { want } from '../../src/testing/conformance/build.ts'
import { CountingKeyValue } from './places/counting-key-value.ts'
import { MemoryKeyValue } from './places/memory-key-value.ts'
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
