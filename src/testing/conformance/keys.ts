/** Idempotency keys: one task per key, for exactly as long as the key lives. */
import assert from 'node:assert/strict'
import { isTerminal } from '../../core/task.ts'
import type { Store } from '../../store/store.ts'
import { commitAndCompare, idOf, keyed, NOW, same, stored } from './build.ts'
import type { Case } from './case.ts'
import { cancelAt } from './moves.ts'

const outcomeOf = async (store: Store, insertion: ReturnType<typeof keyed>, now = NOW): Promise<string> =>
  (await store.insert([insertion], { now }))[0]!.outcome

/** Cancels and removes task `n`. */
const removeTask = async (store: Store, n: number, endKey: boolean): Promise<void> => {
  const ended = await commitAndCompare(store, idOf(n), cancelAt(NOW + 1))
  assert.ok(isTerminal(ended.status))
  assert.deepEqual(await store.remove([{ id: ended.id, revision: ended.revision, endKey }]), ['removed'])
}

const keyHolder = async (store: Store, key: string): Promise<string | undefined> => (await store.find(key))?.key.taskId

export const keyCases: readonly Case[] = [
  {
    name: 'a key in use brings the task it stands for, with its history, and the key record',
    async run(store) {
      const first = keyed(1, 'k')
      assert.equal(await outcomeOf(store, first), 'created')
      const [found] = await store.insert([keyed(2, 'k')], { now: NOW + 1 })
      assert.equal(found?.outcome, 'existing')
      assert.ok('key' in found)
      assert.deepEqual(found.key, first.key)
      same(found.task, first.task)
      assert.deepEqual(await store.get([idOf(2)]), [null])
    },
  },
  {
    name: 'a key brings its task whatever has become of it',
    async run(store) {
      await outcomeOf(store, keyed(1, 'k'))
      const ended = await commitAndCompare(store, idOf(1), cancelAt(NOW + 1))
      const [found] = await store.insert([keyed(2, 'k')], { now: NOW + 2 })
      assert.ok(found?.outcome === 'existing')
      same(found.task, ended)
    },
  },
  {
    name: 'the same insert repeated brings back the task it created the first time',
    async run(store) {
      const insertion = keyed(1, 'k')
      await outcomeOf(store, insertion)
      const [again] = await store.insert([insertion], { now: NOW })
      assert.ok(again !== undefined && again.outcome !== 'created')
      same(again.task, insertion.task)
      assert.equal((await store.count({}, { cap: 10, now: NOW })).count, 1)
    },
  },
  {
    name: 'of two tasks with one key in one batch the first is created and the second finds it',
    async run(store) {
      const inserted = await store.insert([keyed(1, 'k'), keyed(2, 'k')], { now: NOW })
      assert.equal(inserted[0]?.outcome, 'created')
      assert.ok(inserted[1]?.outcome === 'existing')
      assert.equal(inserted[1].task?.id, idOf(1))
      assert.equal((await store.count({}, { cap: 10, now: NOW })).count, 1)
    },
  },
  {
    name: 'of concurrent inserts with one key exactly one creates its task',
    async run(store) {
      const tries = Array.from({ length: 8 }, (_, i) => store.insert([keyed(i + 1, 'k')], { now: NOW }))
      const inserted = (await Promise.all(tries)).flat()
      assert.equal(inserted.filter(({ outcome }) => outcome === 'created').length, 1)
      const winner = await keyHolder(store, 'k')
      for (const one of inserted) if (one.outcome === 'existing') assert.equal(one.task?.id, winner)
      assert.equal((await store.count({}, { cap: 10, now: NOW })).count, 1)
    },
  },
  {
    name: 'a key outlives its removed task until its own lifetime ends',
    async run(store) {
      await outcomeOf(store, keyed(1, 'k', { expiresAt: NOW + 100 }))
      await removeTask(store, 1, false)
      const [found] = await store.insert([keyed(2, 'k')], { now: NOW + 99 })
      assert.ok(found?.outcome === 'existing')
      assert.equal(found.task, null)
      assert.equal(found.key.taskId, idOf(1))
      assert.equal(await outcomeOf(store, keyed(2, 'k'), NOW + 100), 'created')
      assert.equal(await keyHolder(store, 'k'), idOf(2))
    },
  },
  {
    name: 'a key lives as long as its task, also past its own lifetime',
    async run(store) {
      await outcomeOf(store, keyed(1, 'k', { expiresAt: NOW + 100 }))
      assert.equal(await outcomeOf(store, keyed(2, 'k'), NOW + 1_000_000), 'existing')
      await removeTask(store, 1, false)
      assert.equal(await outcomeOf(store, keyed(2, 'k'), NOW + 1_000_000), 'created')
    },
  },
  {
    name: 'an exact lifetime ends a key at that instant though its task is there',
    async run(store) {
      await outcomeOf(store, keyed(1, 'k', { expiresAt: NOW + 100, exact: true }))
      assert.equal(await outcomeOf(store, keyed(2, 'k'), NOW + 99), 'existing')
      assert.equal(await outcomeOf(store, keyed(2, 'k'), NOW + 100), 'created')
      assert.equal(await keyHolder(store, 'k'), idOf(2))
      same(await stored(store, idOf(1)), keyed(1, 'k').task)
    },
  },
  {
    name: 'a key that replaces a dead one has its own hash and lifetime',
    async run(store) {
      await outcomeOf(store, keyed(1, 'k', { expiresAt: NOW + 1, exact: true }))
      const next = keyed(2, 'k', { hash: 'another', expiresAt: NOW + 77, exact: true })
      assert.equal(await outcomeOf(store, next, NOW + 1), 'created')
      assert.deepEqual((await store.find('k'))?.key, next.key)
    },
  },
  {
    name: 'a clash of ids leaves a dead key as it was',
    async run(store) {
      await outcomeOf(store, keyed(1, 'k', { expiresAt: NOW + 1, exact: true }))
      await outcomeOf(store, keyed(2, 'other'))
      assert.equal(await outcomeOf(store, keyed(2, 'k'), NOW + 5), 'clash')
      assert.equal((await keyHolder(store, 'k')) ?? idOf(1), idOf(1))
    },
  },
  {
    name: 'a removal that ends the key frees it at once',
    async run(store) {
      await outcomeOf(store, keyed(1, 'k'))
      await removeTask(store, 1, true)
      assert.equal(await store.find('k'), null)
      assert.equal(await outcomeOf(store, keyed(2, 'k'), NOW + 2), 'created')
    },
  },
  {
    name: 'removing an older task does not end a key that stands for a newer one',
    async run(store) {
      await outcomeOf(store, keyed(1, 'k', { expiresAt: NOW + 1, exact: true }))
      await outcomeOf(store, keyed(2, 'k'), NOW + 1)
      await removeTask(store, 1, true)
      assert.equal(await keyHolder(store, 'k'), idOf(2))
      assert.equal(await outcomeOf(store, keyed(3, 'k'), NOW + 2), 'existing')
    },
  },
  {
    name: 'find brings the key and its task, the key alone, or nothing',
    async run(store) {
      const insertion = keyed(1, 'k')
      await outcomeOf(store, insertion)
      const found = await store.find('k')
      assert.deepEqual(found?.key, insertion.key)
      same(found?.task, insertion.task)
      await removeTask(store, 1, false)
      assert.deepEqual(await store.find('k'), { key: insertion.key, task: null })
      assert.equal(await store.find('unknown'), null)
    },
  },
  {
    name: 'keys that differ in anything are different keys',
    async run(store) {
      const keys = [
        'k',
        'K',
        'k ',
        ' k',
        "k'",
        'k"',
        'k\\',
        'k%',
        'k_',
        'k/',
        'k/../k',
        'k\n',
        'ké',
        'ke\u0301',
        '钥匙',
        '🔑',
        '🔑'.repeat(256),
        'x'.repeat(512),
      ]
      const insertions = keys.map((key, i) => keyed(i + 1, key))
      const inserted = await store.insert(insertions, { now: NOW })
      assert.deepEqual(
        inserted.map(({ outcome }) => outcome),
        keys.map(() => 'created'),
      )
      for (const { key, task } of insertions) {
        const found = await store.find(key.key)
        assert.deepEqual(found?.key, key)
        same(found?.task, task)
      }
    },
  },
]
