/** Detached keys, which have outlived their task: listed, and inserted from another store. A store without them is not asked. */
import assert from 'node:assert/strict'
import type { KeyRecord } from '../../core/idempotency.ts'
import type { DetachedKeys, Store } from '../../store/store.ts'
import { idOf, insert, keyed, task } from './build.ts'
import type { Case } from './case.ts'

/** In the far future, because a store may sweep keys that have expired by its own clock. */
const NOW = 4_000_000_000_000

const withKey = (n: number, key: string, life: Partial<KeyRecord> = {}): ReturnType<typeof keyed> =>
  keyed(n, key, { expiresAt: NOW + 3_600_000, ...life })

const record = (n: number, key: string, life: Partial<KeyRecord> = {}): KeyRecord => withKey(n, key, life).key

const outcomeOf = async (store: Store, insertion: ReturnType<typeof keyed>, now = NOW): Promise<string> =>
  (await store.insert([insertion], { now }))[0]!.outcome

/** All pages, in any order. */
const listed = async (detachedKeys: DetachedKeys, limit = 100): Promise<KeyRecord[]> => {
  const all: KeyRecord[] = []
  for (;;) {
    const after = all.at(-1)?.key
    const page = await detachedKeys.list({ limit, ...(after === undefined ? null : { after }) })
    assert.ok(page.length <= limit, 'a page has more than was asked for')
    if (page.length === 0) return all.sort((a, b) => (a.key < b.key ? -1 : 1))
    all.push(...page)
  }
}

const withDetachedKeys =
  (run: (store: Store, detachedKeys: DetachedKeys) => Promise<void>): Case['run'] =>
  async (store) => {
    if (store.detachedKeys) await run(store, store.detachedKeys)
  }

export const detachedKeyCases: readonly Case[] = [
  {
    name: 'keys whose task was removed without ending them are the detached keys, and no others are',
    run: withDetachedKeys(async (store, detachedKeys) => {
      const [left, ended, held] = [withKey(1, 'left'), withKey(2, 'ended'), withKey(3, 'held')]
      await store.insert([left, ended, held], { now: NOW })
      assert.deepEqual(await listed(detachedKeys), [])
      await store.remove([
        { id: idOf(1), revision: 1, endKey: false },
        { id: idOf(2), revision: 1, endKey: true },
      ])
      assert.deepEqual(await listed(detachedKeys), [left.key])
    }),
  },
  {
    name: 'pages of detached keys follow one another without gap or repeat',
    run: withDetachedKeys(async (_, detachedKeys) => {
      const keys = ['a', 'B', 'c', ' d', 'é', 'e\u0301', '钥匙', '🔑', "k'", 'k"', 'k\\', 'k%', 'k_', 'x'.repeat(512)]
      const records = keys.map((key, i) => record(i + 1, key))
      assert.deepEqual(
        await detachedKeys.put(records, NOW),
        records.map(() => true),
      )
      const inOrder = [...records].sort((a, b) => (a.key < b.key ? -1 : 1))
      for (const limit of [1, 3, 100]) assert.deepEqual(await listed(detachedKeys, limit), inOrder)
    }),
  },
  {
    name: 'a key that was put stands as if its task had been removed',
    run: withDetachedKeys(async (store, detachedKeys) => {
      const key = record(1, 'k', { expiresAt: NOW + 100 })
      assert.deepEqual(await detachedKeys.put([key], NOW), [true])
      assert.deepEqual(await store.find('k'), { key, task: null })
      const [found] = await store.insert([withKey(2, 'k')], { now: NOW + 99 })
      assert.deepEqual(found, { outcome: 'existing', key, task: null })
      assert.equal(await outcomeOf(store, withKey(2, 'k'), NOW + 100), 'created')
      assert.deepEqual(await listed(detachedKeys), [])
    }),
  },
  {
    name: 'a key is not put over a live one, with or without a task, and is put over a dead one',
    run: withDetachedKeys(async (store, detachedKeys) => {
      const [held, detached] = [
        withKey(1, 'held', { expiresAt: NOW + 1 }),
        record(2, 'detached', { expiresAt: NOW + 50 }),
      ]
      const exact = withKey(3, 'exact', { expiresAt: NOW + 50, exact: true })
      await store.insert([held, exact], { now: NOW })
      await detachedKeys.put([detached], NOW)
      const others = [record(7, 'held'), record(8, 'detached'), record(9, 'exact')]
      assert.deepEqual(await detachedKeys.put(others, NOW + 49), [false, false, false])
      assert.deepEqual((await store.find('held'))?.key, held.key)
      assert.deepEqual((await store.find('detached'))?.key, detached)
      assert.deepEqual((await store.find('exact'))?.key, exact.key)
      assert.deepEqual(await detachedKeys.put(others, NOW + 50), [false, true, true])
      assert.deepEqual((await store.find('held'))?.key, held.key)
      assert.deepEqual(await listed(detachedKeys), [others[1], others[2]])
    }),
  },
  {
    name: 'of a key that is put twice the first counts, in one call and in two',
    run: withDetachedKeys(async (_, detachedKeys) => {
      const [first, second] = [record(1, 'k'), record(2, 'k')]
      assert.deepEqual(await detachedKeys.put([first, second], NOW), [true, false])
      assert.deepEqual(await detachedKeys.put([second, first], NOW), [false, false])
      assert.deepEqual(await listed(detachedKeys), [first])
    }),
  },
  {
    name: 'a key that is put for an existing task is that task’s key, and not detached',
    run: withDetachedKeys(async (store, detachedKeys) => {
      const alone = task(1, { idempotencyKey: 'k' })
      await insert(store, alone)
      const key = record(1, 'k', { expiresAt: NOW + 10 })
      assert.deepEqual(await detachedKeys.put([key], NOW), [true])
      assert.deepEqual(await listed(detachedKeys), [])
      assert.equal(await outcomeOf(store, withKey(2, 'k'), NOW + 1_000_000), 'existing')
    }),
  },
]
