/** Keys that outlived their task: listed, and put where they come from another store. */
import assert from 'node:assert/strict'
import type { KeyRecord } from '../../core/idempotency.ts'
import type { Store } from '../../store/store.ts'
import { idOf, insert, keyed, task } from './build.ts'
import type { Case } from './case.ts'

/** Long after today: orphans whose time is over by its own clock are a store's to sweep, whatever instant it is given. */
const NOW = 4_000_000_000_000

const withKey = (n: number, key: string, life: Partial<KeyRecord> = {}): ReturnType<typeof keyed> =>
  keyed(n, key, { expiresAt: NOW + 3_600_000, ...life })

const record = (n: number, key: string, life: Partial<KeyRecord> = {}): KeyRecord => withKey(n, key, life).key

const outcomeOf = async (store: Store, insertion: ReturnType<typeof keyed>, now = NOW): Promise<string> =>
  (await store.insert([insertion], { now }))[0]!.outcome

/** Page by page; in no order that matters. */
const listed = async (store: Store, limit = 100): Promise<KeyRecord[]> => {
  const all: KeyRecord[] = []
  for (;;) {
    const after = all.at(-1)?.key
    const page = await store.orphans.list({ limit, ...(after === undefined ? null : { after }) })
    assert.ok(page.length <= limit, 'a page has more than was asked for')
    if (page.length === 0) return all.sort((a, b) => (a.key < b.key ? -1 : 1))
    all.push(...page)
  }
}

export const orphanCases: readonly Case[] = [
  {
    name: 'keys whose task was removed without ending them are the orphans, and no others are',
    async run(store) {
      const [left, ended, held] = [withKey(1, 'left'), withKey(2, 'ended'), withKey(3, 'held')]
      await store.insert([left, ended, held], { now: NOW })
      assert.deepEqual(await listed(store), [])
      await store.remove([
        { id: idOf(1), revision: 1, endKey: false },
        { id: idOf(2), revision: 1, endKey: true },
      ])
      assert.deepEqual(await listed(store), [left.key])
    },
  },
  {
    name: 'pages of orphans follow one another without gap or repeat',
    async run(store) {
      const keys = ['a', 'B', 'c', ' d', 'é', 'e\u0301', '钥匙', '🔑', "k'", 'k"', 'k\\', 'k%', 'k_', 'x'.repeat(512)]
      const records = keys.map((key, i) => record(i + 1, key))
      assert.deepEqual(
        await store.orphans.put(records, NOW),
        records.map(() => true),
      )
      const inOrder = [...records].sort((a, b) => (a.key < b.key ? -1 : 1))
      for (const limit of [1, 3, 100]) assert.deepEqual(await listed(store, limit), inOrder)
    },
  },
  {
    name: 'a key that was put stands as if its task had been removed',
    async run(store) {
      const key = record(1, 'k', { expiresAt: NOW + 100 })
      assert.deepEqual(await store.orphans.put([key], NOW), [true])
      assert.deepEqual(await store.find('k'), { key, task: null })
      const [found] = await store.insert([withKey(2, 'k')], { now: NOW + 99 })
      assert.deepEqual(found, { outcome: 'existing', key, task: null })
      assert.equal(await outcomeOf(store, withKey(2, 'k'), NOW + 100), 'created')
      assert.deepEqual(await listed(store), [])
    },
  },
  {
    name: 'a key is not put over a live one, with or without a task, and is put over a dead one',
    async run(store) {
      const [held, orphan] = [withKey(1, 'held', { expiresAt: NOW + 1 }), record(2, 'orphan', { expiresAt: NOW + 50 })]
      const exact = withKey(3, 'exact', { expiresAt: NOW + 50, exact: true })
      await store.insert([held, exact], { now: NOW })
      await store.orphans.put([orphan], NOW)
      const others = [record(7, 'held'), record(8, 'orphan'), record(9, 'exact')]
      assert.deepEqual(await store.orphans.put(others, NOW + 49), [false, false, false])
      assert.deepEqual((await store.find('held'))?.key, held.key)
      assert.deepEqual((await store.find('orphan'))?.key, orphan)
      assert.deepEqual((await store.find('exact'))?.key, exact.key)
      assert.deepEqual(await store.orphans.put(others, NOW + 50), [false, true, true])
      assert.deepEqual((await store.find('held'))?.key, held.key)
      assert.deepEqual(await listed(store), [others[2], others[1]])
    },
  },
  {
    name: 'of a key that is put twice the first counts, in one call and in two',
    async run(store) {
      const [first, second] = [record(1, 'k'), record(2, 'k')]
      assert.deepEqual(await store.orphans.put([first, second], NOW), [true, false])
      assert.deepEqual(await store.orphans.put([second, first], NOW), [false, false])
      assert.deepEqual(await listed(store), [first])
    },
  },
  {
    name: 'a key that is put for a task which is there is that task’s key, and no orphan',
    async run(store) {
      const alone = task(1, { idempotencyKey: 'k' })
      await insert(store, alone)
      const key = record(1, 'k', { expiresAt: NOW + 10 })
      assert.deepEqual(await store.orphans.put([key], NOW), [true])
      assert.deepEqual(await listed(store), [])
      assert.equal(await outcomeOf(store, withKey(2, 'k'), NOW + 1_000_000), 'existing')
    },
  },
]
