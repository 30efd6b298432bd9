/** Removals under a revision. */
import assert from 'node:assert/strict'
import { idOf, insert, leasedIds, lookOnly, NOW, same, stored, task } from './build.ts'
import type { Case } from './case.ts'
import { cancelAt } from './moves.ts'

const removal = (n: number, revision: number) => ({ id: idOf(n), revision, endKey: false })

export const removeCases: readonly Case[] = [
  {
    name: 'a removed task is gone from every read',
    async run(store) {
      await insert(store, task(1), task(2))
      assert.deepEqual(await store.remove([removal(1, 1)]), ['removed'])
      assert.deepEqual(await store.get([idOf(1)]), [null])
      assert.equal((await store.count({}, { cap: 10, now: NOW })).count, 1)
      assert.deepEqual((await store.list({}, { order: 'oldest', limit: 10, now: NOW })).tasks.length, 1)
      assert.deepEqual(await leasedIds(store), [idOf(2)])
    },
  },
  {
    name: 'a removal under another revision is a conflict and removes nothing',
    async run(store) {
      await insert(store, task(1))
      await store.commit([cancelAt(NOW + 1)(await stored(store, idOf(1)))!])
      const before = await stored(store, idOf(1))
      assert.deepEqual(await store.remove([removal(1, 1), removal(1, 3)]), ['conflict', 'conflict'])
      same(await stored(store, idOf(1)), before)
    },
  },
  {
    name: 'each removal of a batch is answered by itself, in the order given',
    async run(store) {
      await insert(store, task(1), task(2), task(3))
      assert.deepEqual(
        await store.remove([removal(1, 1), removal(2, 5), removal(9, 1), removal(3, 1), removal(1, 1)]),
        ['removed', 'conflict', 'gone', 'removed', 'gone'],
      )
    },
  },
  {
    name: 'an id that was removed can be inserted again',
    async run(store) {
      await insert(store, task(1))
      await store.remove([removal(1, 1)])
      await insert(store, task(1, { input: '"again"' }))
      same(await stored(store, idOf(1)), task(1, { input: '"again"' }))
    },
  },
  {
    name: 'a removed task is neither reported nor waited for',
    async run(store) {
      await insert(store, task(1, { expiresAt: NOW + 1 }), task(2, { availableAt: NOW + 500 }))
      await store.remove([removal(1, 1), removal(2, 1)])
      assert.deepEqual(await leasedIds(store, { now: NOW + 600 }), [])
      assert.deepEqual((await lookOnly(store, { now: NOW + 600 })).due, [])
    },
  },
]
