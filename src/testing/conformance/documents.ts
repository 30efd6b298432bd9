/** Documents: small named texts with a version. */
import assert from 'node:assert/strict'
import type { Store } from '../../store/store.ts'
import type { Case } from './case.ts'

const put = async (store: Store, ...names: readonly string[]): Promise<void> => {
  for (const name of names) assert.equal(await store.documents.put(name, `value of ${name}`, 0), 1)
}

const listed = async (store: Store, prefix: string): Promise<string[]> =>
  (await store.documents.list(prefix)).map(({ name }) => name)

export const documentCases: readonly Case[] = [
  {
    name: 'a document that was never put is not there',
    async run(store) {
      assert.equal(await store.documents.get('a'), null)
      assert.deepEqual(await store.documents.list(''), [])
    },
  },
  {
    name: 'a document is read back with its version, which grows with every put',
    async run(store) {
      assert.equal(await store.documents.put('a', 'one', 0), 1)
      assert.deepEqual(await store.documents.get('a'), { name: 'a', value: 'one', version: 1 })
      assert.equal(await store.documents.put('a', 'two', 1), 2)
      assert.equal(await store.documents.put('a', '', 2), 3)
      assert.deepEqual(await store.documents.get('a'), { name: 'a', value: '', version: 3 })
    },
  },
  {
    name: 'a put under another version is a conflict and writes nothing',
    async run(store) {
      await store.documents.put('a', 'one', 0)
      await store.documents.put('a', 'two', 1)
      for (const version of [0, 1, 3]) assert.equal(await store.documents.put('a', 'wrong', version), null)
      assert.deepEqual(await store.documents.get('a'), { name: 'a', value: 'two', version: 2 })
      assert.equal(await store.documents.put('b', 'wrong', 1), null)
      assert.equal(await store.documents.get('b'), null)
    },
  },
  {
    name: 'of concurrent puts under one version exactly one is written',
    async run(store) {
      for (const version of [0, 1]) {
        const puts = await Promise.all(['a', 'b', 'c', 'd'].map((value) => store.documents.put('name', value, version)))
        assert.deepEqual(
          puts.filter((made) => made !== null),
          [version + 1],
        )
        assert.equal(
          (await store.documents.get('name'))?.value,
          ['a', 'b', 'c', 'd'][puts.findIndex((made) => made !== null)],
        )
      }
    },
  },
  {
    name: 'a delete needs the version, and succeeds where there is nothing',
    async run(store) {
      await put(store, 'a')
      assert.equal(await store.documents.delete('a', 2), false)
      assert.equal((await store.documents.get('a'))?.version, 1)
      // Another process wrote after this one had read.
      await put(store, 'b')
      assert.equal(await store.documents.put('b', 'newer', 1), 2)
      assert.equal(await store.documents.delete('b', 1), false)
      assert.equal((await store.documents.get('b'))?.value, 'newer')
      assert.equal(await store.documents.delete('a', 1), true)
      assert.equal(await store.documents.get('a'), null)
      assert.equal(await store.documents.delete('a', 1), true)
      assert.equal(await store.documents.delete('never', 7), true)
      assert.notEqual(await store.documents.put('a', 'again', 0), null)
    },
  },
  {
    name: 'a list has whole documents by name',
    async run(store) {
      await put(store, 'queue/b', 'queue/a', 'other')
      await store.documents.put('queue/a', 'changed', 1)
      assert.deepEqual(await store.documents.list('queue/'), [
        { name: 'queue/a', value: 'changed', version: 2 },
        { name: 'queue/b', value: 'value of queue/b', version: 1 },
      ])
      assert.deepEqual(await listed(store, ''), ['other', 'queue/a', 'queue/b'])
    },
  },
  {
    name: 'a prefix is taken letter by letter: %, _, * and the rest mean themselves',
    async run(store) {
      await put(store, 'a%b', 'axb', 'a_b', 'a*b', 'a[b', "a'b", 'a\\b', 'a/b', 'A%b', 'é1', '🔑1')
      assert.deepEqual(await listed(store, 'a%'), ['a%b'])
      assert.deepEqual(await listed(store, 'a_'), ['a_b'])
      assert.deepEqual(await listed(store, 'a*'), ['a*b'])
      assert.deepEqual(await listed(store, 'a['), ['a[b'])
      assert.deepEqual(await listed(store, "a'"), ["a'b"])
      assert.deepEqual(await listed(store, 'a\\'), ['a\\b'])
      assert.deepEqual(await listed(store, 'a/'), ['a/b'])
      assert.deepEqual(await listed(store, 'A'), ['A%b'])
      assert.deepEqual(await listed(store, 'é'), ['é1'])
      assert.deepEqual(await listed(store, '🔑'), ['🔑1'])
      assert.deepEqual(await listed(store, 'a%b!'), [])
    },
  },
  {
    name: 'the value of a document comes out as it went in',
    async run(store) {
      const values = ['{"a":"\\u0000"}', 'line\r\nline\u2028', '🪢 "quoted" \\ \'single\'', 'x'.repeat(200_000)]
      for (const [i, value] of values.entries()) {
        await store.documents.put(`d${i}`, value, 0)
        assert.equal((await store.documents.get(`d${i}`))?.value, value)
      }
    },
  },
]
