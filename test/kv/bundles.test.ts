/** Bundles, one hint for several tasks: which tasks share one, when it is deleted, and that no task is lost. */
import { describe, expect, test } from 'vitest'
import { complete, fail } from '../../src/core/machine.ts'
import type { TaskRecord } from '../../src/core/task.ts'
import { bundleFor, hintsIn } from '../../src/store/kv/records/bundle-names.ts'
import { hintFor, parseHint } from '../../src/store/kv/records/hint-names.ts'
import { READY, TASKS, taskKey } from '../../src/store/kv/records/names.ts'
import type { Store } from '../../src/store/store.ts'
import { idOf, want } from '../../src/testing/conformance/build.ts'
import { violations } from './invariants.ts'
import { openKvInMemory } from './open.ts'
import { KeyValueMap, MemoryKeyValue } from './places/memory-key-value.ts'
import { fresh, NOW } from './scenes.ts'
import { begin } from './setup.ts'

const hintsOf = ({ entries }: KeyValueMap): string[] => [...entries.keys()].filter((key) => key.startsWith(READY))

const batch = (store: Store, count: number, fields: (n: number) => Partial<TaskRecord> = () => ({})) =>
  store.insert(
    Array.from({ length: count }, (_, n) => ({ task: fresh(n + 1, fields(n)) })),
    { now: NOW },
  )

const open = (map: KeyValueMap): Store => openKvInMemory(new MemoryKeyValue(map, { wall: () => NOW }))

/** A process adds the tasks that it ended to the index before it counts. */
const entered = (store: Store): Promise<unknown> =>
  store.count({ views: [{ status: 'completed' }] }, { cap: 1_000, now: NOW })

const endAll = (store: Store, leased: readonly TaskRecord[], now = NOW + 1) =>
  store.commit(leased.map((one) => complete(one, { token: one.lease!.token }, { text: '1', encoding: 'json' }, now)))

describe('the name of a shared hint', () => {
  const v4 = (n: number): string => `${n.toString(16).padStart(8, '0')}-1111-4222-8333-444455556666`

  test.each([
    { ids: 'made one after the other', idAt: idOf },
    { ids: 'that have nothing in common', idAt: (n: number) => v4(n * 0x0fffffff) },
  ])('says every id of those $ids, in parts that any file system can keep', ({ idAt }) => {
    const own = Array.from({ length: 20 }, (_, n) => hintFor({ ...fresh(1), id: idAt(n + 1) }, 1, null)!)
    const { key, hints } = bundleFor(own, 'nonce')
    expect(hintsIn(key).map(({ id }) => id)).toEqual(own.map((hint) => parseHint(hint)!.id))
    expect(hintsIn(key).map((hint) => hint.key)).toEqual(hints)
    expect(hintsIn(key)).toMatchObject(
      own.map((hint) => ({ ...parseHint(hint)!, key: `${hint}~nonce`, bundle: 'nonce' })),
    )
    expect(Math.max(...key.split('/').map((part) => part.length))).toBeLessThanOrEqual(255)
    // A bundle is not taken for the hint of one task.
    expect(parseHint(key)).toBeNull()
  })

  test('is never longer than the place allows, and where there is no room every task has a hint of its own', async () => {
    const map = new KeyValueMap()
    const store = open(map)
    const long = ':'.repeat(100)
    await batch(store, 50, () => ({ queue: long }))
    expect(hintsOf(map).length).toBeLessThan(20)
    for (const key of hintsOf(map)) expect(key.length).toBeLessThanOrEqual(1_000)
    const tight = new KeyValueMap()
    await batch(open(tight), 50, () => ({ queue: long, type: long }))
    for (const key of hintsOf(tight)) expect(key.length).toBeLessThanOrEqual(1_000)
    expect(violations(tight)).toEqual([])
    await store.close()
  })
})

describe('tasks that share a hint', () => {
  test('are those of one batch with one queue, type, priority and time', async () => {
    const map = new KeyValueMap()
    await batch(open(map), 40)
    expect(hintsOf(map)).toHaveLength(2)
    expect(hintsOf(map).map((key) => hintsIn(key).length)).toEqual([20, 20])
  })

  test.each<{ what: string; fields: (n: number) => Partial<TaskRecord> }>([
    { what: 'queues', fields: (n) => ({ queue: n % 2 ? 'a' : 'b' }) },
    { what: 'types', fields: (n) => ({ type: n % 2 ? 'a' : 'b' }) },
    { what: 'priorities', fields: (n) => ({ priority: n % 2 }) },
    { what: 'times', fields: (n) => ({ availableAt: NOW + (n % 2) }) },
    { what: 'expiries', fields: (n) => ({ expiresAt: NOW + 10_000 + (n % 2) }) },
  ])('not those of different $what', async ({ fields }) => {
    const map = new KeyValueMap()
    await batch(open(map), 10, fields)
    expect(hintsOf(map)).toHaveLength(2)
    expect(violations(map)).toEqual([])
  })

  test('do not exist where a bundle is not cheaper', async () => {
    const map = new KeyValueMap()
    const kv: { longestHint?: number | undefined } & MemoryKeyValue = new MemoryKeyValue(map, { wall: () => NOW })
    Object.defineProperty(kv, 'longestHint', { value: undefined })
    await batch(openKvInMemory(kv), 10)
    expect(hintsOf(map)).toHaveLength(10)
  })

  test('the higher priority goes first, also among tasks that share', async () => {
    const map = new KeyValueMap()
    const store = open(map)
    await batch(store, 12, (n) => ({ priority: n % 3 }))
    const { leased } = await open(map).claim(want({ now: NOW, limit: 12 }))
    expect(leased.map(({ priority }) => priority)).toEqual([2, 2, 2, 2, 1, 1, 1, 1, 0, 0, 0, 0])
  })
})

describe('when a shared hint goes', () => {
  test('not before the last of its tasks is among the ended ones of the index, and then at once', async () => {
    const map = new KeyValueMap()
    const store = open(map)
    await batch(store, 5)
    for (const left of [4, 3, 2, 1, 0]) {
      await endAll(store, (await store.claim(want({ now: NOW, limit: 1 }))).leased)
      expect(hintsOf(map)).toHaveLength(1)
      await entered(store)
      // Discards run in the next turn of the event loop.
      await new Promise((turn) => setImmediate(turn))
      expect(violations(map)).toEqual([])
      expect(hintsOf(map)).toHaveLength(left > 0 ? 1 : 0)
    }
  })

  test('two workers that took from the same one: the next claim after both have ended withdraws it', async () => {
    const map = new KeyValueMap()
    let mono = 0
    const openAt = (): Store =>
      openKvInMemory(new MemoryKeyValue(map, { wall: () => NOW }), {
        timers: { mono: () => mono, after: () => () => {} },
      })
    const [one, two] = [openAt(), openAt()]
    await batch(one, 6)
    const first = (await one.claim(want({ now: NOW, limit: 3, leaseTtl: 5_000 }))).leased
    const second = (await two.claim(want({ now: NOW, limit: 6, leaseTtl: 5_000, workerId: 'two' }))).leased
    expect([...first, ...second].map(({ id }) => id).sort()).toEqual([1, 2, 3, 4, 5, 6].map(idOf))
    await endAll(one, first)
    await endAll(two, second)
    expect(violations(map)).toEqual([])
    // By then the leases that each process remembers of the other have lapsed.
    for (const store of [one, two]) await store.claim(want({ now: NOW + 10_000 }))
    // By then the time that each leaves the other to add them to the index is over.
    mono = 60_000
    for (const store of [one, two]) await store.claim(want({ now: NOW + 10_000 }))
    for (const store of [one, two]) await store.close()
    const reader = openAt()
    expect(await entered(reader)).toEqual({ count: 6, capped: false })
    expect(hintsOf(map)).toEqual([])
  })

  test('a task that waits to be tried again has a hint of its own by then', async () => {
    const map = new KeyValueMap()
    const store = open(map)
    await batch(store, 3)
    const { leased } = await store.claim(want({ now: NOW, limit: 3 }))
    const facts = { error: new Error('no'), permanent: false, now: NOW + 1, random: 0.9 }
    await store.commit([fail(leased[0]!, { token: leased[0]!.lease!.token }, facts)])
    await endAll(store, leased.slice(1))
    await store.close()
    expect(hintsOf(map).map((key) => hintsIn(key).map(({ id, bundle }) => ({ id, bundle })))).toEqual([
      [{ id: leased[0]!.id, bundle: null }],
    ])
    expect(violations(map)).toEqual([])
  })

  test('a task that is given back is found by the hint that it shares', async () => {
    const { clock, map, open: process } = begin()
    const [here, there] = [await process(), await process()]
    await here.client.submitMany([1, 2, 3].map((input) => ({ type: 'a', input })))
    const { leased } = await here.store.claim(want({ limit: 3, now: null, leaseTtl: 30_000 }))
    expect(leased).toHaveLength(3)
    const claimed = await there.store.claim(want({ limit: 3, now: null }))
    expect(claimed.leased).toEqual([])
    for (let second = 0; second < 40; second++) await clock.advance(1_000)
    const worker = there.client.worker().handle('a', async () => null)
    worker.start()
    for (let second = 0; second < 40; second++) await clock.advance(1_000)
    expect((await there.client.count({ status: 'completed' })).count).toBe(3)
    expect(hintsOf(map)).toEqual([])
    await worker.stop()
  })
})

describe('a process that dies', () => {
  test('in the middle of a batch leaves the rest to others, and what it held comes back', async () => {
    const { clock, map, open: process } = begin()
    const [dead, alive] = [await process(), await process()]
    const results = await dead.client.submitMany(Array.from({ length: 20 }, (_, input) => ({ type: 'a', input })))
    expect(hintsOf(map)).toHaveLength(1)
    const { leased } = await dead.store.claim(want({ limit: 8, now: null, leaseTtl: 30_000, types: ['a'] }))
    await endAll(dead.store, leased.slice(0, 4), clock.wall())
    const ran: unknown[] = []
    const worker = alive.client.worker({ concurrency: 5 }).handle('a', async (input) => void ran.push(input))
    worker.start()
    await clock.advance(3_000)
    expect(ran).toHaveLength(12)
    for (let second = 0; second < 60; second++) await clock.advance(1_000)
    expect(ran).toHaveLength(16)
    expect(new Set(ran).size).toBe(16)
    expect((await alive.client.count({ status: 'completed' })).count).toBe(results.length)
    expect(hintsOf(map)).toEqual([])
    await worker.stop()
  })

  /** Delays the write of this task. */
  class Slow extends MemoryKeyValue {
    readonly gate = Promise.withResolvers<void>()
    readonly reached = Promise.withResolvers<void>()
    late = ''

    override async create(key: string, value: string): Promise<string | null> {
      if (key === taskKey(this.late)) {
        this.reached.resolve()
        await this.gate.promise
      }
      return super.create(key, value)
    }
  }

  test('a hint stays while one of its tasks may still be written, whatever has become of the others', async () => {
    const map = new KeyValueMap()
    const slow = new Slow(map, { wall: () => NOW })
    slow.late = idOf(3)
    const writer = openKvInMemory(slow)
    const inserting = batch(writer, 3)
    await slow.reached.promise
    const other = open(map)
    await endAll(other, (await other.claim(want({ now: NOW }))).leased)
    for (let second = 1; second < 30; second++) await other.claim(want({ now: NOW + second * 1_000 }))
    expect(hintsOf(map)).toHaveLength(1)
    slow.gate.resolve()
    expect((await inserting).map(({ outcome }) => outcome)).toEqual(['created', 'created', 'created'])
    expect(violations(map)).toEqual([])
    const { leased } = await other.claim(want({ now: NOW + 40_000 }))
    expect(leased.map(({ id }) => id)).toEqual([idOf(3)])
    await endAll(other, leased, NOW + 40_000)
    await other.close()
    expect(hintsOf(map)).toEqual([])
  })

  test('a writer that comes after an hour finds the key taken, and starts again with a hint of its own', async () => {
    const map = new KeyValueMap()
    let wall = NOW
    const slow = new Slow(map, { wall: () => wall })
    slow.late = idOf(2)
    const inserting = batch(openKvInMemory(slow), 2)
    await slow.reached.promise
    wall = NOW + 2 * 3_600_000
    const other = openKvInMemory(new MemoryKeyValue(map, { wall: () => wall }))
    await endAll(other, (await other.claim(want({ now: wall }))).leased, wall)
    for (let look = 1; look < 3; look++) await other.claim(want({ now: wall + look * 10_000 }))
    await other.close()
    expect(hintsOf(map)).toEqual([])
    slow.gate.resolve()
    await inserting
    expect([...map.entries.keys()].filter((key) => key.startsWith(TASKS))).toHaveLength(2)
    expect(violations(map)).toEqual([])
    expect(hintsOf(map).flatMap((key) => hintsIn(key).map(({ id }) => id))).toEqual([idOf(2)])
  })
})
