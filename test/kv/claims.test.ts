/** Claims where other processes have taken most of the tasks. */
import { describe, expect, onTestFinished, test } from 'vitest'
import { HoldfastError } from '../../src/core/errors.ts'
import { complete } from '../../src/core/machine.ts'
import { KvStore } from '../../src/store/kv/store.ts'
import { claimOne, ids, idsOf, insert, NOW, task, want } from '../../src/testing/conformance/build.ts'
import { openKvInMemory } from './open.ts'
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

/** A claim as it is, and one under limits. */
const LIMITS = [undefined, { concurrency: 50, notAfter: null, turns: null }] as const

test.each([
  ['get', LIMITS[0]],
  ['update', LIMITS[0]],
  ['update', LIMITS[1]],
] as const)('what a claim has leased is delivered though one %s hangs (limits: %o)', async (verb, limits) => {
  const hangs = Promise.withResolvers<void>()
  const { map, open } = begin()
  const { client } = await open()
  const tasks = await Promise.all(Array.from({ length: 5 }, () => client.submit('email', null)))
  const wait = async (what: string, key: string): Promise<void> => {
    if (what === verb && key.includes(tasks[2]!.id)) await hangs.promise
  }
  class Hanging extends MemoryKeyValue {
    override async get(key: string) {
      await wait('get', key)
      return super.get(key)
    }
    override async update(key: string, value: string, mark: string) {
      await wait('update', key)
      return super.update(key, value, mark)
    }
  }
  const store = new KvStore(new Hanging(map), { capabilities: [], leaseTtl: 30_000 })
  const { leased } = await store.claim(want({ limit: 5, now: null, leaseTtl: 30_000, ...(limits && { limits }) }))
  expect(leased.map(({ id }) => id)).toEqual(tasks.filter((_, n) => n !== 2).map(({ id }) => id))
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

describe.each(LIMITS)('a claim of five tasks (limits: %o)', (limits) => {
  /** The server refuses what concerns the tasks in `poor`, by that code. */
  const scene = async (code: 'STORE_REFUSED' | 'STORE_FULL' | 'STORE_UNAVAILABLE', verb: 'get' | 'update') => {
    const { map, clock, open } = begin()
    const { client } = await open()
    const tasks = await Promise.all(Array.from({ length: 5 }, () => client.submit('email', null)))
    const poor = new Set<string>()
    const refuse = (what: string, key: string): void => {
      if (what === verb && [...poor].some((id) => key.includes(id))) throw new HoldfastError(code, 'planted')
    }
    class Refusing extends MemoryKeyValue {
      override async get(key: string) {
        refuse('get', key)
        return super.get(key)
      }
      override async update(key: string, value: string, mark: string) {
        refuse('update', key)
        return super.update(key, value, mark)
      }
    }
    const store = new KvStore(new Refusing(map, { wall: () => clock.wall() }), { capabilities: [], leaseTtl: 30_000 })
    onTestFinished(() => store.close())
    let op = 0
    const claim = (limit: number) =>
      store.claim(want({ limit, now: null, leaseTtl: 30_000, op: `op-${++op}`, ...(limits && { limits }) }))
    const statuses = async () => (await client.list({ order: 'oldest' })).tasks.map(({ status }) => status)
    return { clock, claim, statuses, poor, ids: tasks.map(({ id }) => id) }
  }

  test.each([
    ['STORE_REFUSED', 'get'],
    ['STORE_REFUSED', 'update'],
    ['STORE_FULL', 'update'],
  ] as const)('delivers every lease that it wrote when one is answered by %s at %s', async (code, verb) => {
    const { claim, statuses, poor, ids: all } = await scene(code, verb)
    poor.add(all[2]!)
    const delivered = (await claim(5)).leased.map(({ id }) => id)
    const running = all.filter((_, n) => n !== 2)
    expect(delivered).toEqual(running)
    expect(await statuses()).toEqual(all.map((id) => (id === all[2] ? 'pending' : 'running')))
  })

  test.each(['get', 'update'] as const)('passes over a task that the server refuses to %s', async (verb) => {
    const { clock, claim, poor, ids: all } = await scene('STORE_REFUSED', verb)
    poor.add(all[0]!)
    expect((await claim(1)).leased.map(({ id }) => id)).toEqual([all[1]])
    expect((await claim(5)).leased.map(({ id }) => id)).toEqual(all.slice(2))
    // Refused only for a while: it is tried again.
    poor.clear()
    await clock.advance(31_000)
    expect((await claim(5)).leased.map(({ id }) => id)).toEqual([all[0]])
  })

  test.each(['STORE_REFUSED', 'STORE_FULL'] as const)('fails with %s when it could lease nothing', async (code) => {
    const { claim, statuses, poor, ids: all } = await scene(code, 'update')
    for (const id of all) poor.add(id)
    await expect(claim(5)).rejects.toMatchObject({ code })
    expect(new Set(await statuses())).toEqual(new Set(['pending']))
  })
})

test("a claim that leases tasks delivers them although a look at a dead worker's task fails", async () => {
  const map = new KeyValueMap()
  class Failing extends MemoryKeyValue {
    lost: string | null = null
    override async get(key: string) {
      if (this.lost !== null && key.includes(this.lost)) throw new HoldfastError('STORE_READ_ONLY', 'planted')
      return super.get(key)
    }
  }
  const kv = new Failing(map)
  const store = openKvInMemory(kv)
  onTestFinished(() => store.close())
  await insert(store, task(1), task(2))
  const held = await claimOne(store, { limit: 1, leaseTtl: 100 })
  kv.lost = held.id
  const { leased, due } = await store.claim(want({ now: NOW + 200, limit: 1, dueLimit: 1, op: 'second' }))
  expect(idsOf(leased)).toEqual(ids(2))
  expect(due).toEqual([])
})
