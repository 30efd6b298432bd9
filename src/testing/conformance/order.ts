/** The claim order: priority, then availableAt, then id. */
import assert from 'node:assert/strict'
import type { TaskRecord } from '../../core/task.ts'
import { ids, insert, leasedIds, NOW, task } from './build.ts'
import type { Case } from './case.ts'

/** A fixed shuffle, so that neither insertion order nor any single field equals the claim order. */
const mixed: readonly TaskRecord[] = [
  task(8, { type: 'a', priority: 0 }),
  task(3, { type: 'b', priority: 0, availableAt: NOW - 5 }),
  task(1, { type: 'c', priority: -1000, availableAt: NOW - 900 }),
  task(9, { type: 'a', priority: 1000, availableAt: NOW - 1 }),
  task(7, { type: 'b', priority: 0 }),
  task(2, { type: 'a', priority: 1, availableAt: NOW }),
  task(5, { type: 'c', priority: 1, availableAt: NOW - 3 }),
  task(6, { type: 'b', priority: 1, availableAt: NOW - 3 }),
  task(4, { type: 'a', priority: 0, availableAt: NOW - 5 }),
  task(10, { type: 'a', priority: -1, availableAt: NOW - 500 }),
  task(11, { type: 'b', priority: 1000, availableAt: NOW + 1 }),
]
const TURN = [9, 5, 6, 2, 3, 4, 7, 8, 10, 1] as const

/** One type has all the oldest tasks, two others alternate, a fourth is rare; some tasks may expire. */
const unequal: readonly TaskRecord[] = Array.from({ length: 160 }, (_, n) =>
  task(n + 1, {
    type: n < 60 ? 'old' : n % 41 === 0 ? 'rare' : n % 2 === 0 ? 'even' : 'odd',
    priority: n % 7 === 0 ? 1 : 0,
    availableAt: NOW - 1_000 + Math.floor(n / 3),
    expiresAt: n % 5 === 0 ? NOW + 1_000 : null,
  }),
)
const UNEQUAL_TURN = [...unequal]
  .sort((a, b) => b.priority - a.priority || a.availableAt - b.availableAt || (a.id < b.id ? -1 : 1))
  .map(({ id }) => id)

export const orderCases: readonly Case[] = [
  {
    name: 'tasks are leased by priority, then availability, then id, over all types',
    needs: ['exact-order'],
    async run(store) {
      await insert(store, ...mixed)
      assert.deepEqual(await leasedIds(store, { limit: 20 }), ids(...TURN))
    },
  },
  {
    name: 'the order holds over several small looks',
    needs: ['exact-order'],
    async run(store) {
      await insert(store, ...mixed)
      const turns: string[] = []
      for (const limit of [1, 3, 2, 1, 20]) turns.push(...(await leasedIds(store, { limit })))
      assert.deepEqual(turns, ids(...TURN))
    },
  },
  ...[1, 6, 50, 1_000].map(
    (limit): Case => ({
      name: `the order holds over types of unequal shares, in looks of ${limit}`,
      needs: ['exact-order'],
      async run(store) {
        await insert(store, ...unequal)
        const turns: string[] = []
        for (let look = 0; look < Math.ceil(unequal.length / limit); look++)
          turns.push(...(await leasedIds(store, { types: ['odd', 'even', 'old', 'rare', 'none'], limit })))
        assert.deepEqual(turns, UNEQUAL_TURN)
      },
    }),
  ),
  {
    name: 'the order holds among the wanted types only',
    needs: ['exact-order'],
    async run(store) {
      await insert(store, ...mixed)
      assert.deepEqual(await leasedIds(store, { types: ['c', 'a'], limit: 5 }), ids(9, 5, 2, 4, 8))
      assert.deepEqual(await leasedIds(store, { types: ['b'], limit: 20 }), ids(6, 3, 7))
    },
  },
  {
    name: 'a task that is not available yet does not hold up one of lower priority',
    async run(store) {
      await insert(store, task(1, { priority: 9, availableAt: NOW + 50 }), task(2, { priority: -9 }))
      assert.deepEqual(await leasedIds(store, { limit: 1 }), ids(2))
    },
  },
  {
    name: 'the leased tasks of one look come in the order to run them',
    async run(store) {
      await insert(store, ...mixed)
      assert.deepEqual(await leasedIds(store, { limit: 20 }), ids(...TURN))
    },
  },
]
