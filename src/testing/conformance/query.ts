/** Reads by id, and in pages with every filter. */
import assert from 'node:assert/strict'
import * as machine from '../../core/machine.ts'
import { isLastPage, PAGE_WEIGHT, weightOf } from '../../core/storage/page-weight.ts'
import { matchesView, VIEWS, type View, viewFilter } from '../../core/views.ts'
import type { Query, Store } from '../../store/store.ts'
import { claimOne, idOf, ids, idsOf, insert, moved, NOW, same, stored, task, want, withoutHistory } from './build.ts'
import type { Case } from './case.ts'
import { by, cancelAt, claimAt, completeAt, failAt, population } from './moves.ts'

const oldest = async (store: Store, query: Query, now = NOW, limit = 1_000): Promise<string[]> =>
  idsOf((await store.list(query, { order: 'oldest', limit, now })).tasks)

const viewCase = (view: View): Case => ({
  name: `a list of ${view} tasks has exactly those that the view matches`,
  async run(store) {
    const tasks = [...population, task(401), task(402, { availableAt: NOW + 5_000 })]
    await insert(store, ...tasks)
    for (const now of [NOW, NOW + 100, NOW + 5_000]) {
      const expected = idsOf(tasks.filter((record) => matchesView(record, viewFilter(view), now)))
      assert.deepEqual(await oldest(store, { views: [viewFilter(view)] }, now), expected)
      assert.equal((await store.count({ views: [viewFilter(view)] }, { cap: 1_000, now })).count, expected.length)
    }
  },
})

/** A query, what it matches, and what it does not. */
const filterCase = (
  name: string,
  prepare: (store: Store) => Promise<void>,
  expectations: readonly (readonly [Query, readonly number[]])[],
): Case => ({
  name,
  async run(store) {
    await prepare(store)
    for (const [query, numbers] of expectations) {
      assert.deepEqual(await oldest(store, query), ids(...numbers), JSON.stringify(query))
      assert.equal(
        (await store.count(query, { cap: 1_000, now: NOW })).count,
        numbers.length,
        `count of ${JSON.stringify(query)}`,
      )
    }
  },
})

export const queryCases: readonly Case[] = [
  {
    name: 'pages of large payloads end early, are never empty before the end, and together have every task once',
    async run(store) {
      const text = JSON.stringify('x'.repeat(600_000))
      const tasks = Array.from({ length: 30 }, (_, n) => task(n + 1, { input: text }))
      for (const one of tasks) await insert(store, one)
      // A store may find what has not ended in another way than everything.
      for (const query of [{}, { views: [{ status: 'pending' as const }] }]) {
        const seen: string[] = []
        for (let after: string | undefined; ; after = seen.at(-1)!) {
          const page = (await store.list(query, { order: 'oldest', limit: 1_000, now: NOW, ...(after && { after }) }))
            .tasks
          const weight = page.reduce((sum, record) => sum + weightOf(record), 0)
          assert.ok(weight < PAGE_WEIGHT + text.length, `a page of ${page.length} tasks has ${weight} characters`)
          seen.push(...idsOf(page))
          if (isLastPage(page, 1_000)) break
        }
        assert.deepEqual(seen, idsOf(tasks))
      }
    },
  },
  {
    name: 'get brings tasks in the order asked for, null where there is none, and one twice when asked twice',
    async run(store) {
      await insert(store, task(1), task(2))
      assert.deepEqual(await store.get([]), [])
      const found = await store.get([idOf(2), idOf(9), idOf(1), idOf(2)])
      assert.deepEqual(
        found.map((record) => record?.id ?? null),
        [idOf(2), null, idOf(1), idOf(2)],
      )
      for (const record of found) if (record) assert.equal(record.history.length, 1)
    },
  },
  {
    name: 'a list has whole tasks without their history',
    async run(store) {
      await insert(store, ...population)
      const listed = (await store.list({}, { order: 'oldest', limit: 1_000, now: NOW })).tasks
      assert.equal(listed.length, population.length)
      for (const [i, record] of listed.entries()) same(record, withoutHistory(population[i]!))
    },
  },
  {
    name: 'a list is in the order of ids, newest or oldest first, whatever the order of insertion',
    async run(store) {
      await insert(store, ...[3, 1, 4, 5, 2].map((n) => task(n)))
      assert.deepEqual(await oldest(store, {}), ids(1, 2, 3, 4, 5))
      assert.deepEqual(
        idsOf((await store.list({}, { order: 'newest', limit: 10, now: NOW })).tasks),
        ids(5, 4, 3, 2, 1),
      )
    },
  },
  {
    name: 'pages follow one another without gap or repeat, in both orders',
    async run(store) {
      const numbers = Array.from({ length: 25 }, (_, i) => i + 1)
      await insert(store, ...numbers.map((n) => task(n, { type: n % 3 === 0 ? 'b' : 'a' })))
      for (const order of ['oldest', 'newest'] as const) {
        for (const query of [{}, { type: 'b' }, { views: [{ status: 'pending' as const }] }]) {
          const met: string[] = []
          for (let after: string | undefined; ; after = met.at(-1)) {
            const page = (
              await store.list(query, {
                order,
                limit: 4,
                now: NOW,
                ...(after === undefined ? null : { after }),
              })
            ).tasks
            met.push(...idsOf(page))
            if (page.length < 4) break
          }
          const expected = ids(...numbers.filter((n) => !('type' in query) || n % 3 === 0))
          assert.deepEqual(met, order === 'oldest' ? expected : expected.reverse())
        }
      }
    },
  },
  {
    name: 'a page goes on after its cursor also when the task of that id is gone',
    async run(store) {
      await insert(store, task(1), task(3), task(5))
      assert.deepEqual(
        idsOf((await store.list({}, { order: 'oldest', limit: 10, after: idOf(2), now: NOW })).tasks),
        ids(3, 5),
      )
      assert.deepEqual(
        idsOf((await store.list({}, { order: 'newest', limit: 10, after: idOf(4), now: NOW })).tasks),
        ids(3, 1),
      )
      assert.deepEqual(
        idsOf((await store.list({}, { order: 'oldest', limit: 10, after: idOf(5), now: NOW })).tasks),
        [],
      )
    },
  },
  ...VIEWS.map(viewCase),
  {
    name: 'a list of several views has the tasks of any of them, and of no view none',
    async run(store) {
      await insert(
        store,
        task(1),
        task(2, { availableAt: NOW + 50 }),
        moved(task(3), cancelAt(NOW)),
        moved(task(4), claimAt(NOW)),
      )
      assert.deepEqual(await oldest(store, { views: [viewFilter('scheduled'), viewFilter('cancelled')] }), ids(2, 3))
      assert.deepEqual(await oldest(store, { views: [viewFilter('running'), viewFilter('pending')] }), ids(1, 2, 4))
      assert.deepEqual(await oldest(store, { views: [viewFilter('pending'), viewFilter('ready')] }), ids(1, 2))
      assert.equal(
        (await store.count({ views: [viewFilter('pending'), viewFilter('ready')] }, { cap: 100, now: NOW })).count,
        2,
      )
      assert.deepEqual(await oldest(store, { views: [] }), [])
      assert.equal((await store.count({ views: [] }, { cap: 100, now: NOW })).count, 0)
    },
  },
  filterCase(
    'lists and counts take a queue and a type',
    (store) =>
      insert(
        store,
        task(1, { queue: 'a', type: 'x' }),
        task(2, { queue: 'b', type: 'x' }),
        task(3, { queue: 'a', type: 'y' }),
        task(4, { queue: 'A', type: 'X' }),
      ),
    [
      [{ queue: 'a' }, [1, 3]],
      [{ type: 'x' }, [1, 2]],
      [{ queue: 'a', type: 'x' }, [1]],
      [{ queue: 'a', type: 'x', views: [{ status: 'running' }] }, []],
      [{ queue: 'none' }, []],
      [{ type: 'none' }, []],
    ],
  ),
  filterCase(
    'lists and counts take a tag, whatever its name and value are made of',
    (store) =>
      insert(
        store,
        task(1, { tags: { team: 'red', 'a.b': '1', '$[0]': 'x' } }),
        task(2, { tags: { team: 'blue', 'quo"te': "sin'gle", '\\': '\\' } }),
        task(3, { tags: { other: 'red', 'ключ 🔑': 'знач\n', ['__proto__']: 'own' } }),
        task(4),
        task(5, { tags: { team: '', number: '1', constructor: 'c' } }),
      ),
    [
      [{ tag: { name: 'team', value: 'red' } }, [1]],
      [{ tag: { name: 'team', value: '' } }, [5]],
      [{ tag: { name: 'number', value: '1' } }, [5]],
      [{ tag: { name: 'a.b', value: '1' } }, [1]],
      [{ tag: { name: '$[0]', value: 'x' } }, [1]],
      [{ tag: { name: 'quo"te', value: "sin'gle" } }, [2]],
      [{ tag: { name: '\\', value: '\\' } }, [2]],
      [{ tag: { name: 'ключ 🔑', value: 'знач\n' } }, [3]],
      [{ tag: { name: '__proto__', value: 'own' } }, [3]],
      [{ tag: { name: 'constructor', value: 'c' } }, [5]],
      [{ tag: { name: 'team', value: 'RED' } }, []],
      [{ tag: { name: 'team', value: 'red' }, type: 'none' }, []],
    ],
  ),
  filterCase(
    'lists and counts take the time of creation, both ends excluded',
    (store) => insert(store, ...[1, 2, 3, 4].map((n) => task(n, { createdAt: NOW + n }))),
    [
      [{ createdAfter: NOW + 2 }, [3, 4]],
      [{ createdBefore: NOW + 3 }, [1, 2]],
      [{ createdAfter: NOW + 1, createdBefore: NOW + 4 }, [2, 3]],
      [{ createdAfter: NOW + 2, createdBefore: NOW + 3 }, []],
    ],
  ),
  filterCase(
    'lists and counts take the time of the end, which excludes what has not ended',
    (store) =>
      insert(store, task(1), ...[2, 3, 4].map((n) => moved(task(n), cancelAt(NOW + n))), moved(task(5), claimAt(NOW))),
    [
      [{ completedBefore: NOW + 4 }, [2, 3]],
      [{ completedBefore: NOW + 2 }, []],
      [{ completedBefore: NOW + 100, views: [{ status: 'cancelled' }] }, [2, 3, 4]],
      [{ completedBefore: NOW + 100, views: [{ status: 'completed' }] }, []],
    ],
  ),
  {
    name: 'lists and counts take the time of the last move, whatever the status, asked at once or much later',
    async run(store) {
      const tasks = [...population, task(401), task(402, { createdAt: NOW + 60 })]
      await insert(store, ...tasks)
      const instants = [...new Set(tasks.map(({ updatedAt }) => updatedAt))]
      for (const after of [NOW - 1, ...instants])
        for (const now of [after, after + 1_000_000_000]) {
          const expected = idsOf(tasks.filter(({ updatedAt }) => updatedAt > after))
          assert.deepEqual(await oldest(store, { updatedAfter: after }, now), expected)
          assert.equal((await store.count({ updatedAfter: after }, { cap: 1_000, now })).count, expected.length)
          const page = { order: 'newest', limit: 2, now } as const
          const first = idsOf((await store.list({ updatedAfter: after }, page)).tasks)
          assert.deepEqual(first, expected.reverse().slice(0, 2))
          const next =
            first.length === 0
              ? []
              : (await store.list({ updatedAfter: after }, { ...page, after: first.at(-1)! })).tasks
          assert.deepEqual(idsOf(next), expected.slice(2, 4))
        }
    },
  },
  {
    name: 'lists and counts take both ends of the time of the last move, which are excluded',
    async run(store) {
      const tasks = [...population, task(401), task(402, { createdAt: NOW + 60 })]
      await insert(store, ...tasks)
      const instants = [...new Set(tasks.map(({ updatedAt }) => updatedAt))].sort((a, b) => a - b)
      const [first, last] = [instants[0]!, instants.at(-1)!]
      for (const [updatedAfter, updatedBefore] of [
        [first, last],
        [first - 1, instants[1]!],
        [first, first + 1],
        [first - 1, last + 1],
      ] as const)
        for (const now of [last, last + 1_000_000_000]) {
          const query = { updatedAfter, updatedBefore }
          const isMeant = ({ updatedAt }: (typeof tasks)[number]) =>
            updatedAt > updatedAfter && updatedAt < updatedBefore
          const expected = idsOf(tasks.filter(isMeant))
          assert.deepEqual(await oldest(store, query, now), expected)
          assert.equal((await store.count(query, { cap: 1_000, now })).count, expected.length)
        }
    },
  },
  {
    name: 'a move brings a task back among those changed lately, a renewal does not',
    async run(store) {
      await insert(store, task(1), task(2))
      const since = NOW + 10
      const held = await claimOne(store, { limit: 1, now: NOW + 20 })
      assert.deepEqual(await oldest(store, { updatedAfter: since }, NOW + 20), ids(1))
      await store.renew([{ id: held.id, token: held.lease!.token, leaseTtl: 500 }], NOW + 40)
      assert.deepEqual(await oldest(store, { updatedAfter: NOW + 30 }, NOW + 40), [])
      await store.commit([completeAt(NOW + 50)(await stored(store, idOf(1)))!])
      assert.deepEqual(await oldest(store, { updatedAfter: NOW + 30 }, NOW + 50), ids(1))
      await store.commit([by(machine.archive, NOW + 60)(await stored(store, idOf(1)))!])
      await store.commit([by(machine.unarchive, NOW + 70)(await stored(store, idOf(1)))!])
      assert.deepEqual(await oldest(store, { updatedAfter: NOW + 60 }, NOW + 70), ids(1))
      assert.deepEqual(await oldest(store, { updatedAfter: NOW + 60, type: 'other' }, NOW + 70), [])
    },
  },
  {
    name: 'a list by worker has the running tasks that it holds now',
    async run(store) {
      await insert(store, ...[1, 2, 3, 4].map((n) => task(n)))
      await store.claim(want({ limit: 2, workerId: 'w "1"' }))
      await claimOne(store, { limit: 1, workerId: 'w2' })
      assert.deepEqual(await oldest(store, { workerId: 'w "1"' }), ids(1, 2))
      assert.equal((await store.count({ workerId: 'w "1"' }, { cap: 100, now: NOW })).count, 2)
      assert.deepEqual(await oldest(store, { workerId: 'w' }), [])
      await store.commit([
        completeAt(NOW + 1)(await stored(store, idOf(1)))!,
        failAt(NOW + 1)(await stored(store, idOf(3)))!,
      ])
      assert.deepEqual(await oldest(store, { workerId: 'w "1"' }), ids(2))
      assert.deepEqual(await oldest(store, { workerId: 'w2' }), [])
    },
  },
  {
    name: 'a list by worker and view has only what matches both',
    async run(store) {
      await insert(store, task(1))
      await claimOne(store, { workerId: 'w' })
      assert.deepEqual(await oldest(store, { workerId: 'w', views: [{ status: 'running' }] }), ids(1))
      assert.deepEqual(await oldest(store, { workerId: 'w', views: [{ status: 'completed' }] }), [])
      assert.equal(
        (await store.count({ workerId: 'w', views: [{ status: 'completed' }] }, { cap: 10, now: NOW })).count,
        0,
      )
    },
  },
]
