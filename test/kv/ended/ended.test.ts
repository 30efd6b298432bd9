/** The index of ended tasks: what it answers, what it costs, and that it stays correct when processes die or tasks move on. */
import { describe, expect, test } from 'vitest'
import * as machine from '../../../src/core/machine.ts'
import { isTerminal, type TaskRecord, type TaskStatus, TERMINAL_STATUSES } from '../../../src/core/task.ts'
import { ENDED, INDEX_STATE, parseSegment } from '../../../src/store/kv/ended/segment-names.ts'
import { decodeTask } from '../../../src/store/kv/records/bodies.ts'
import { hintsIn } from '../../../src/store/kv/records/bundle-names.ts'
import { READY, TASKS } from '../../../src/store/kv/records/names.ts'
import type { KvOptions } from '../../../src/store/kv/store.ts'
import type { Query, Store } from '../../../src/store/store.ts'
import { idOf, want } from '../../../src/testing/conformance/build.ts'
import { Random } from '../../../src/testing/random.ts'
import { violations } from '../invariants.ts'
import { openKvInMemory } from '../open.ts'
import { CountingKeyValue } from '../places/counting-key-value.ts'
import { KeyValueMap, MemoryKeyValue } from '../places/memory-key-value.ts'
import { fresh, NOW } from '../scenes.ts'

const MINUTE = 60_000

/** Several processes on one key-value store, with one clock. */
const begin = () => {
  const map = new KeyValueMap()
  let wall = NOW
  const timers = new Set<{ at: number; run: () => void }>()
  const after = (delay: number, run: () => void) => {
    const timer = { at: wall + delay, run }
    timers.add(timer)
    return () => timers.delete(timer)
  }
  const open = (options: Partial<KvOptions> = {}) => {
    const kv = new CountingKeyValue(new MemoryKeyValue(map, { wall: () => wall }))
    const store = openKvInMemory(kv, { timers: { mono: () => wall, after: () => () => {} }, ...options })
    return { store, kv }
  }
  const pass = (time: number): void => {
    wall += time
  }
  /** As `pass`, but runs the timers of processes that are alive. */
  const live = async (time: number): Promise<void> => {
    const end = wall + time
    for (;;) {
      const [next] = [...timers].filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)
      wall = Math.max(wall, next?.at ?? end)
      if (next === undefined) return
      timers.delete(next)
      next.run()
      await new Promise((turn) => setTimeout(turn, 1))
    }
  }
  return { map, open, pass, live, after, now: () => wall }
}

const segmentsOf = ({ entries }: KeyValueMap) =>
  [...entries.keys()].filter((key) => key.startsWith(ENDED)).map((key) => parseSegment(key)!)

const hintsOf = ({ entries }: KeyValueMap): string[] => [...entries.keys()].filter((key) => key.startsWith(READY))

const of = (status: TaskStatus, query: Query = {}): Query => ({ ...query, views: [{ status }] })
const count = async (store: Store, query: Query, now = NOW): Promise<number> =>
  (await store.count(query, { cap: 1_000_000, now })).count
const idsOf = async (
  store: Store,
  query: Query,
  page: { order?: 'newest' | 'oldest'; after?: string; limit?: number } = {},
) => (await store.list(query, { order: 'newest', limit: 1_000, now: NOW, ...page })).tasks.map(({ id }) => id)

const ended = (n: number, fields: Partial<TaskRecord> = {}): TaskRecord =>
  fresh(n, { status: 'completed', completedAt: NOW, revision: 3, ...fields })

const insertAll = (store: Store, tasks: readonly TaskRecord[]) =>
  store.insert(
    tasks.map((task) => ({ task })),
    { now: NOW },
  )

/** Runs new tasks to their end; failed ones have no retries left. */
const run = async (store: Store, from: number, many: number, now: number, isFailure = false): Promise<void> => {
  const made = Array.from({ length: many }, (_, n) =>
    fresh(from + n, { createdAt: now, availableAt: now, updatedAt: now }),
  )
  await store.insert(
    made.map((task) => ({ task })),
    { now },
  )
  const { leased } = await store.claim(want({ now, limit: many, leaseTtl: 5_000 }))
  const facts = { error: new Error('no'), permanent: true, now, random: 0.5 }
  await store.commit(
    leased.map((task) =>
      isFailure
        ? machine.fail(task, { token: task.lease!.token }, facts)
        : machine.complete(task, { token: task.lease!.token }, { text: '1', encoding: 'json' }, now),
    ),
  )
}

const read = async (store: Store, n: number): Promise<TaskRecord> => (await store.get([idOf(n)]))[0]!
const actor = (now: number) => ({ now, by: 'operator', op: `op-${now}` })

describe('what is added', () => {
  test('tasks that end together share one segment, and keep their hints until it is there', async () => {
    const { map, open } = begin()
    const { store } = open()
    await run(store, 1, 20, NOW)
    expect(segmentsOf(map)).toEqual([])
    expect(hintsOf(map).flatMap(hintsIn)).toHaveLength(20)
    expect(await count(store, of('completed'))).toBe(20)
    expect(segmentsOf(map)).toMatchObject([{ status: 'completed', queue: 'default', kind: 'added', count: 20 }])
    await store.close()
    expect(hintsOf(map)).toEqual([])
  })

  test('fifty are added at once, without waiting for more', async () => {
    const { map, open } = begin()
    const { store } = open()
    await run(store, 1, 50, NOW)
    await expect.poll(() => segmentsOf(map).map((one) => one.count)).toEqual([50])
  })

  test('the name of a segment is short enough for any server, whatever the queue', async () => {
    const { map, open } = begin()
    const { store } = open()
    await insertAll(store, [ended(1, { queue: ':'.repeat(128) })])
    expect(await count(store, of('completed', { queue: ':'.repeat(128) }))).toBe(1)
    expect(segmentsOf(map)[0]!.key.length).toBeLessThan(900)
  })
})

describe('what is asked', () => {
  test('lists are in the order of ids, newest or oldest, page by page, whatever the order of the ends', async () => {
    const { open } = begin()
    const { store } = open()
    const order = [7, 3, 9, 1, 8, 2, 6, 10, 4, 5]
    for (const [at, n] of order.entries()) {
      await insertAll(store, [ended(n, { completedAt: NOW + at * MINUTE, updatedAt: NOW + at * MINUTE })])
      // A segment for each.
      await count(store, of('completed'))
    }
    const all = Array.from({ length: 10 }, (_, n) => idOf(n + 1))
    expect(await idsOf(store, of('completed'), { order: 'oldest' })).toEqual(all)
    expect(await idsOf(store, of('completed'), { limit: 4 })).toEqual(all.toReversed().slice(0, 4))
    expect(await idsOf(store, of('completed'), { limit: 4, after: idOf(7) })).toEqual(all.toReversed().slice(4, 8))
    expect(await idsOf(store, {}, { order: 'oldest', limit: 3, after: idOf(2) })).toEqual(all.slice(2, 5))
  })

  test('a list of all has what waits, what runs and what has ended, each once and in order', async () => {
    const { open } = begin()
    const [one, two] = [open().store, open().store]
    await run(one, 1, 5, NOW)
    await insertAll(one, [fresh(6), ended(7), fresh(8), ended(9, { status: 'failed' })])
    await one.claim(want({ now: NOW, limit: 1, leaseTtl: 5_000 }))
    // Also from a process that has ended nothing: a task that is not in the index yet still has a hint.
    for (const store of [one, two])
      expect(await idsOf(store, {}, { order: 'oldest' })).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9].map(idOf))
    for (const store of [one, two]) expect(await count(store, {})).toBe(9)
  })

  test.each<[string, Query, number]>([
    ['a type', { type: 'b' }, 10],
    ['a queue', { queue: 'mail' }, 5],
    ['a tag', { tag: { name: 'n', value: '1' } }, 1],
    ['when they were made', { createdAfter: NOW + 10, createdBefore: NOW + 15 }, 4],
    ['when they ended', { completedBefore: NOW + 5 * MINUTE }, 5],
  ])('filters by %s are answered alike by lists and counts', async (_, query, expected) => {
    const { open } = begin()
    const { store } = open()
    await insertAll(
      store,
      Array.from({ length: 20 }, (_, n) =>
        ended(n + 1, {
          type: n % 2 ? 'a' : 'b',
          queue: n % 4 ? 'default' : 'mail',
          tags: { n: String(n) },
          createdAt: NOW + n,
          completedAt: NOW + n * MINUTE,
          updatedAt: NOW + n * MINUTE,
        }),
      ),
    )
    expect(await count(store, of('completed', query))).toBe(expected)
    expect(await idsOf(store, of('completed', query))).toHaveLength(expected)
  })

  test('what has just ended in another process is counted at once where few tasks have hints, and else when it is in the index', async () => {
    const { open } = begin()
    const [worker, reader] = [open().store, open().store]
    await run(worker, 1, 3, NOW)
    expect(await count(reader, of('completed'))).toBe(3)
    expect(await idsOf(reader, of('completed'))).toHaveLength(3)
    await insertAll(
      worker,
      Array.from({ length: 60 }, (_, n) => fresh(100 + n, { type: 'other' })),
    )
    expect(await count(reader, of('completed'))).toBe(0)
    expect(await count(worker, of('completed'))).toBe(3)
    expect(await count(reader, of('completed'))).toBe(3)
  })

  test('what changed lately is found among hints and new segments, and nothing else is read', async () => {
    const { map, open, now, pass } = begin()
    const { store, kv } = open()
    for (let n = 0; n < 40; n++) {
      await run(store, 1 + 50 * n, 50, now())
      pass(MINUTE)
    }
    await expect.poll(() => hintsOf(map)).toEqual([])
    const since = now() - 1
    await run(store, 5_000, 3, now())
    await insertAll(store, [fresh(6_000, { updatedAt: now(), createdAt: now() })])
    const changes = async (own: Store) => (await idsOf(own, { updatedAfter: since })).sort()
    expect(await changes(store)).toEqual([5_000, 5_001, 5_002, 6_000].map(idOf))
    kv.take()
    expect(await changes(store)).toHaveLength(4)
    expect(kv.take()).toEqual({ LIST: 2, GET: 4 })
    // Also after they were added to the index, and for tasks that were archived long after they ended.
    await count(store, of('completed'))
    expect(await changes(open().store)).toHaveLength(4)
    await store.commit([machine.archive(await read(store, 1), actor(now()))!])
    for (const own of [store, open().store]) expect(await changes(own)).toContain(idOf(1))
    await count(store, of('completed'))
    expect(await changes(open().store)).toContain(idOf(1))
  })
})

describe('what leaves its status', () => {
  const cases: readonly (readonly [string, (store: Store, n: number, now: number) => Promise<unknown>, number])[] = [
    ['a retry', async (store, n, now) => store.commit([machine.retry(await read(store, n), actor(now))]), 0],
    ['an archive', async (store, n, now) => store.commit([machine.archive(await read(store, n), actor(now))!]), 1],
    [
      'a removal',
      async (store, n) => {
        const { id, revision } = await read(store, n)
        return store.remove([{ id, revision, endKey: false }])
      },
      0,
    ],
  ]

  test.each(cases)('%s is neither listed nor counted any more, here and elsewhere', async (_, move, archived) => {
    const { open, now, pass, map } = begin()
    const [one, two] = [open().store, open().store]
    await run(one, 1, 4, NOW, true)
    expect(await count(one, of('failed'))).toBe(4)
    pass(2 * MINUTE)
    await move(two, 2, now())
    expect(await idsOf(two, of('failed'))).toEqual([4, 3, 1].map(idOf))
    expect(await count(two, of('failed'))).toBe(3)
    expect(await count(one, of('failed'))).toBe(3)
    expect(await count(one, of('archived'))).toBe(archived)
    expect(violations(map)).toEqual([])
  })

  test('one that was never added costs no subtraction', async () => {
    const { open, map } = begin()
    const { store } = open()
    await run(store, 1, 1, NOW, true)
    await store.commit([machine.retry(await read(store, 1), actor(NOW + 1))])
    expect(await count(store, of('failed'))).toBe(0)
    expect(segmentsOf(map)).toEqual([])
    expect(violations(map)).toEqual([])
  })

  test('an entry whose subtraction was lost is noticed by a process that lists it twice', async () => {
    const { open, now, pass } = begin()
    const { store } = open()
    await run(store, 1, 3, NOW, true)
    await count(store, of('failed'))
    const dying = open().store
    await dying.commit([machine.retry(await read(dying, 2), actor(now()))])
    // The process dies here. Lists no longer show the task, but the names still count it.
    expect(await idsOf(store, of('failed'))).toEqual([3, 1].map(idOf))
    expect(await count(store, of('failed'))).toBe(3)
    pass(MINUTE)
    expect(await idsOf(store, of('failed'))).toEqual([3, 1].map(idOf))
    expect(await count(store, of('failed'))).toBe(2)
  })

  test('a hint that was left over does not bring back what was added and removed', async () => {
    const { open, map, now, pass } = begin()
    const { store } = open()
    await run(store, 1, 1, NOW, true)
    const hint = hintsOf(map)[0]!
    await count(store, of('failed'))
    await new Promise((turn) => setImmediate(turn))
    const look = open().store
    // What a process leaves that dies between writing the segment and withdrawing the hint.
    map.entries.set(hint, { value: '', mark: 'left over' })
    await look.claim(want({ now: now() }))
    await store.commit([machine.archive(await read(store, 1), actor(now()))!])
    await store.close()
    pass(MINUTE)
    await look.claim(want({ now: now() }))
    await look.close()
    const reader = open().store
    expect(await count(reader, of('failed'))).toBe(0)
    expect(await count(reader, of('archived'))).toBe(1)
    expect(hintsOf(map)).toEqual([])
  })
})

describe('a process that dies', () => {
  test('before it added what it has ended leaves that to the next claim, after half a minute', async () => {
    const { open, map, now, pass } = begin()
    await run(open().store, 1, 5, NOW)
    const { store } = open()
    await store.claim(want({ now: now() }))
    expect(segmentsOf(map)).toEqual([])
    pass(MINUTE)
    await store.claim(want({ now: now() }))
    await store.close()
    expect(segmentsOf(map).map((one) => one.count)).toEqual([5])
    expect(hintsOf(map)).toEqual([])
  })

  test('between a segment and the hints does not add a task twice', async () => {
    const { open, map, now, pass } = begin()
    const dying = open()
    await run(dying.store, 1, 5, NOW)
    const hints = hintsOf(map)
    await count(dying.store, of('completed'))
    await new Promise((turn) => setImmediate(turn))
    for (const hint of hints) map.entries.set(hint, { value: '', mark: 'left over' })
    const { store } = open()
    await store.claim(want({ now: now() }))
    pass(MINUTE)
    await store.claim(want({ now: now() }))
    await store.close()
    expect(segmentsOf(map).map((one) => one.count)).toEqual([5])
    expect(hintsOf(map)).toEqual([])
  })
})

describe('maintenance', () => {
  /** The commit after ten minutes merges. */
  const maintain = async (store: Store, pass: (time: number) => void, now: () => number): Promise<void> => {
    pass(30 * MINUTE)
    await run(store, 90_000 + now(), 1, now())
    await store.count({}, { cap: 1, now: now() })
  }

  test('small segments become large ones, and what was subtracted goes with what it was subtracted from', async () => {
    const { open, map, now, pass } = begin()
    const { store } = open()
    for (let n = 0; n < 30; n++) {
      await run(store, 1 + 10 * n, 10, now())
      await count(store, of('completed'))
      pass(5_000)
    }
    for (const n of [5, 50, 100]) {
      const { id, revision } = await read(store, n)
      await store.remove([{ id, revision, endKey: false }])
    }
    expect(await count(store, of('completed'))).toBe(297)
    expect(segmentsOf(map).length).toBeGreaterThan(30)
    await maintain(store, pass, now)
    await expect
      .poll(() =>
        segmentsOf(map)
          .filter((one) => one.count > 1)
          .map((one) => one.count),
      )
      .toEqual([297])
    expect(await count(open().store, of('completed'))).toBe(298)
    expect(await idsOf(open().store, of('completed'))).toHaveLength(298)
    expect(violations(map)).toEqual([])
  })

  test('what was added twice, or subtracted without having been added, is right after a merge', async () => {
    const { open, map, now, pass } = begin()
    const { store } = open()
    await run(store, 1, 10, now())
    await count(store, of('completed'))
    const [segment] = segmentsOf(map)
    map.entries.set(`${segment!.key}x`, map.entries.get(segment!.key)!)
    const { id, revision } = await read(store, 3)
    await store.remove([{ id, revision, endKey: false }])
    expect(await count(store, of('completed'))).toBe(19)
    await maintain(store, pass, now)
    // The second entry of the removed task stays until a process lists it twice.
    await expect.poll(() => count(open().store, of('completed'))).toBe(11)
    expect(await idsOf(open().store, of('completed'))).toHaveLength(10)
  })

  test('a reader whose segments are merged while it reads starts again', async () => {
    const { open, now, pass } = begin()
    const { store } = open()
    for (let n = 0; n < 20; n++) {
      await run(store, 1 + 10 * n, 10, now())
      await count(store, of('completed'))
    }
    const { store: reader, kv } = open()
    const get = kv.get.bind(kv)
    let merging: Promise<void> | null = null
    kv.get = async (key) => {
      if (key.startsWith(ENDED)) {
        merging ??= maintain(store, pass, now).then(() => store.close())
        await merging
      }
      return get(key)
    }
    const found = await idsOf(reader, of('completed'), { order: 'oldest' })
    expect(merging).not.toBeNull()
    expect(found.slice(0, 200)).toEqual(Array.from({ length: 200 }, (_, n) => idOf(n + 1)))
  })

  test('a store that was made without an index is read in full until a working process has built it', async () => {
    const { open, map, now } = begin()
    const old = open({ indexesEnded: false }).store
    await run(old, 1, 30, NOW)
    await old.close()
    expect(map.entries.has(INDEX_STATE)).toBe(false)
    const { store, kv } = open()
    expect(await count(store, of('completed'))).toBe(30)
    expect(kv.take()['GET']).toBeGreaterThan(30)
    await run(store, 100, 1, now())
    await expect.poll(() => map.entries.get(INDEX_STATE)?.value).toContain('"isComplete":true')
    const { store: later, kv: counted } = open()
    expect(await count(later, of('completed'))).toBe(31)
    expect(counted.take()['GET']).toBeLessThan(5)
    expect(violations(map)).toEqual([])
  })

  test('an index that was half built when its builder died is finished by another', async () => {
    const { open, map, now, pass } = begin()
    const old = open({ indexesEnded: false }).store
    await run(old, 1, 30, NOW)
    await old.close()
    const dying = open()
    let creates = 0
    const create = dying.kv.create.bind(dying.kv)
    dying.kv.create = async (key, value) => {
      const mark = await create(key, value)
      if (key.startsWith(ENDED) && ++creates === 1) await new Promise(() => {})
      return mark
    }
    void run(dying.store, 100, 1, now())
    await expect.poll(() => segmentsOf(map).length).toBe(1)
    const other = open()
    await run(other.store, 200, 1, now())
    expect(map.entries.get(INDEX_STATE)?.value).toContain('"isComplete":false')
    pass(10 * MINUTE)
    await run(other.store, 300, 1, now())
    await expect.poll(() => map.entries.get(INDEX_STATE)?.value).toContain('"isComplete":true')
    const reader = open().store
    pass(MINUTE)
    expect(await idsOf(reader, of('completed'))).toHaveLength(33)
    expect(violations(map)).toEqual([])
  })
})

describe('two processes that end, retry, archive and remove, through merges', () => {
  test.each([1, 2, 3, 4])(
    'agree with the tasks themselves at every step of seed %i',
    { timeout: 60_000 },
    async (seed) => {
      const { open, map, now, live, after } = begin()
      const random = new Random(seed)
      const stores = [open({ timers: { mono: now, after } }).store, open({ timers: { mono: now, after } }).store]
      let made = 0
      const pick = async (store: Store): Promise<TaskRecord | null> =>
        made === 0 ? null : ((await store.get([idOf(1 + random.below(made))]))[0] ?? null)
      const moves: readonly ((store: Store) => Promise<unknown>)[] = [
        async (store) => {
          const many = 1 + random.below(30)
          await run(store, made + 1, many, now(), random.chance(0.5))
          made += many
        },
        async (store) => {
          const task = await pick(store)
          if (task?.status === 'failed') await store.commit([machine.retry(task, actor(now()))])
        },
        async (store) => {
          const task = await pick(store)
          if (task === null || !isTerminal(task.status)) return
          const move = task.status === 'archived' ? machine.unarchive : machine.archive
          await store.commit([move(task, actor(now()))!])
        },
        async (store) => {
          const task = await pick(store)
          if (task !== null && isTerminal(task.status)) await store.remove([{ ...task, endKey: false }])
        },
        async () => live(random.below(5 * MINUTE)),
      ]
      // From its first write on a process knows that the index is complete.
      for (const own of stores) await run(own, ++made, 1, now())
      for (let step = 1; step <= 150; step++) {
        const store = random.pick(stores as [Store, Store])
        await random.pick(moves as [(typeof moves)[number]])(store)
        if (step % 10 !== 0) continue
        // Everything that a process has ended or moved is in the index when it counts.
        for (const own of stores) await count(own, {})
        await new Promise((turn) => setTimeout(turn, 1))
        expect(violations(map)).toEqual([])
        const tasks = [...map.entries]
          .filter(([key]) => key.startsWith(TASKS))
          .map(([key, { value }]) => decodeTask(key, value))
        const truth = tasks.flatMap((body) => ('task' in body ? [body.task] : []))
        for (const status of TERMINAL_STATUSES) {
          const ids = truth.filter((task) => task.status === status).map(({ id }) => id)
          expect(await count(store, of(status)), `${status} after step ${step}`).toBe(ids.length)
          expect(await idsOf(store, of(status), { order: 'oldest', limit: 10_000 })).toEqual(ids.sort())
        }
        expect(await count(store, {})).toBe(truth.length)
      }
    },
  )
})
