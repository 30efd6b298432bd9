/** Counts up to a cap, correct after every kind of write. */
import assert from 'node:assert/strict'
import { STATUSES } from '../../core/task.ts'
import type { Query, Store } from '../../store/store.ts'
import { claimOne, idOf, insert, moved, NOW, stored, task, want } from './build.ts'
import type { Case } from './case.ts'
import { cancelAt, completeAt, failAt, releaseAt } from './moves.ts'

const countAs = async (store: Store, expected: Readonly<Record<string, number>>, query: Query = {}): Promise<void> => {
  const counts: Record<string, number> = {}
  for (const status of STATUSES) {
    const counted = (await store.count({ ...query, views: [{ status }] }, { cap: 1_000, now: NOW })).count
    if (counted > 0) counts[status] = counted
  }
  assert.deepEqual(counts, expected)
  const total = Object.values(expected).reduce((sum, one) => sum + one, 0)
  assert.equal((await store.count(query, { cap: 1_000, now: NOW })).count, total)
}

export const countCases: readonly Case[] = [
  {
    name: 'a count goes no further than its cap',
    async run(store) {
      await insert(store, ...[1, 2, 3, 4, 5].map((n) => task(n, { tags: { a: 'b' } })))
      for (const query of [
        {},
        { type: 'email' },
        { queue: 'default' },
        { tag: { name: 'a', value: 'b' } },
        { views: [{ status: 'pending' as const }] },
      ]) {
        assert.deepEqual(await Promise.all([0, 1, 3, 5, 9].map((cap) => store.count(query, { cap, now: NOW }))), [
          { count: 0, capped: true },
          { count: 1, capped: true },
          { count: 3, capped: true },
          { count: 5, capped: false },
          { count: 5, capped: false },
        ])
      }
    },
  },
  {
    name: 'an empty store counts nothing',
    async run(store) {
      await countAs(store, {})
      await countAs(store, {}, { queue: 'default' })
    },
  },
  {
    name: 'counts are right after inserts, claims, changes, conflicts and removals',
    async run(store) {
      await insert(
        store,
        ...[1, 2, 3, 4, 5].map((n) => task(n)),
        moved(task(6), cancelAt(NOW)),
        task(7, { queue: 'other' }),
      )
      await countAs(store, { pending: 6, cancelled: 1 })
      await store.insert([{ task: task(1) }], { now: NOW })
      await countAs(store, { pending: 6, cancelled: 1 })
      const { leased } = await store.claim(want({ limit: 4 }))
      await countAs(store, { pending: 2, running: 4, cancelled: 1 })
      const [one, two, three, four] = leased
      const changes = [
        completeAt(NOW + 1)(one!)!,
        failAt(NOW + 1)(two!)!,
        releaseAt(NOW + 1)(three!)!,
        cancelAt(NOW + 1)(four!)!,
      ]
      await store.commit(changes)
      await store.commit(changes)
      await countAs(store, { pending: 4, running: 1, completed: 1, cancelled: 1 })
      await store.remove([
        { id: idOf(6), revision: 2, endKey: false },
        { id: idOf(6), revision: 2, endKey: false },
        { id: idOf(1), revision: 99, endKey: false },
      ])
      await countAs(store, { pending: 4, running: 1, completed: 1 })
      await countAs(store, { pending: 3, running: 1, completed: 1 }, { queue: 'default' })
      await countAs(store, { pending: 1 }, { queue: 'other' })
    },
  },
  {
    name: 'counts that depend on time follow the time given',
    async run(store) {
      await insert(store, task(1), task(2, { availableAt: NOW + 100 }))
      const leased = await claimOne(store, { limit: 1 })
      await store.commit([failAt(NOW + 1)(await stored(store, leased.id))!])
      const views = {
        ready: [{ status: 'pending', available: 'now' }],
        scheduled: [{ status: 'pending', available: 'later' }],
        retrying: [{ status: 'pending', available: 'later', retried: true }],
      } as const
      const counts = (now: number) =>
        Promise.all(
          Object.values(views).map(async (filter) => (await store.count({ views: filter }, { cap: 100, now })).count),
        )
      assert.deepEqual(await counts(NOW + 1), [0, 2, 1])
      assert.deepEqual(await counts(NOW + 100), [1, 1, 1])
      assert.deepEqual(await counts(NOW + 10_000), [2, 0, 0])
    },
  },
]
