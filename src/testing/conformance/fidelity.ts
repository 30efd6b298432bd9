/** Data is returned as it was stored: payloads byte for byte, names and errors with any text. */
import assert from 'node:assert/strict'
import * as machine from '../../core/machine.ts'
import { encodePayload, MAX_PAYLOAD } from '../../core/values/payload.ts'
import type { Store } from '../../store/store.ts'
import { claimOne, commitAndCompare, idOf, insert, NOW, same, stored, task, want } from './build.ts'
import type { Case } from './case.ts'
import { cancelAt, claimAt, failAt } from './moves.ts'

const texts: Readonly<Record<string, string>> = {
  'the empty values': JSON.stringify([null, '', {}, [], 0, -0, false]),
  'a null': 'null',
  'an empty text': '""',
  'a NUL and other control characters': JSON.stringify('\0\u0001\b\t\n\r\u001f\u007f'),
  'half of a surrogate pair': JSON.stringify(['\ud800', '\udfff', 'a\ud83d']),
  'emoji and scripts from everywhere': JSON.stringify('🪢👩‍👩‍👧‍👦 日本語 العربية \u0301 ﷽ \u{10ffff}'),
  'line separators of JavaScript': JSON.stringify('\u2028\u2029\ufeff\u200b'),
  'quotes, backslashes and SQL': JSON.stringify(`'"\\ \\" '; drop table holdfast_task; -- $1 ? :a %s \${x}`),
  'keys in an order of their own': '{"b":1,"a":2,"10":3,"9":4}',
  'white space between tokens': '{ "a" : [ 1 , 2 ],\n\t"b":null }',
  'a key twice': '{"a":1,"a":2}',
  'numbers as they were written': '[1.0,1e400,-0,0.1,12345678901234567890,1E5]',
  'a key named __proto__': '{"__proto__":{"polluted":true},"constructor":1}',
  'a text of one MiB': JSON.stringify('x'.repeat(MAX_PAYLOAD - 2)),
  'emoji of one MiB': JSON.stringify('🪢'.repeat((MAX_PAYLOAD - 4) / 4)),
  'the deepest nesting': `${'['.repeat(256)}${']'.repeat(256)}`,
}

const roundTrip = async (store: Store, text: string): Promise<void> => {
  await insert(store, task(1, { input: text }))
  const leased = await claimOne(store)
  assert.ok(leased.input === text, 'the input of the leased task differs')
  await store.renew([{ id: idOf(1), token: leased.lease!.token, leaseTtl: 9, progress: text }], NOW)
  const output = { text, encoding: 'json' as const }
  assert.deepEqual(await store.commit([machine.complete(leased, { token: leased.lease!.token }, output, NOW + 1)]), [
    'written',
  ])
  const after = await stored(store, idOf(1))
  assert.ok(after.input === text, 'the stored input differs')
  assert.ok(after.output === text, 'the stored output differs')
  assert.ok(after.progress === text, 'the stored progress differs')
  const [listed] = (await store.list({}, { order: 'oldest', limit: 1, now: NOW })).tasks
  assert.ok(listed?.output === text, 'the listed output differs')
}

/** Text that breaks out of strings, escapes and statements unless it is handled as data. */
const AWKWARD = `w'1" \\ \\" ','{} \n\t\u0001\u0002\u0007 %s $1 ?1 🪢 \u2028 ключ`

export const fidelityCases: readonly Case[] = [
  ...Object.entries(texts).map(
    ([what, text]): Case => ({
      name: `a payload with ${what} comes out as the text that went in`,
      run: (store) => roundTrip(store, text),
    }),
  ),
  {
    name: 'bytes of every value come out as they went in',
    async run(store) {
      const bytes = encodePayload(
        Uint8Array.from({ length: 256 }, (_, i) => i),
        'input',
        MAX_PAYLOAD,
      )
      await insert(store, task(1, { input: bytes.text, encoding: bytes.encoding }))
      const leased = await claimOne(store)
      assert.deepEqual([leased.input, leased.encoding], [bytes.text, 'base64'])
      await store.commit([machine.complete(leased, { token: leased.lease!.token }, bytes, NOW + 1)])
      const { input, encoding, output, outputEncoding } = await stored(store, idOf(1))
      assert.deepEqual([input, encoding, output, outputEncoding], [bytes.text, 'base64', bytes.text, 'base64'])
    },
  },
  {
    name: 'no bytes at all come out as no bytes, alone and in a batch',
    async run(store) {
      const none = encodePayload(new Uint8Array(), 'input', MAX_PAYLOAD)
      await insert(store, task(1, { input: none.text, encoding: none.encoding }))
      await insert(store, task(2, { input: none.text, encoding: none.encoding }), task(3))
      const { leased } = await store.claim(want())
      assert.deepEqual(
        leased.map(({ input }) => input),
        ['', '', '{}'],
      )
      const [first] = leased
      await store.commit([machine.complete(first!, { token: first!.lease!.token }, none, NOW + 1)])
      const { output, outputEncoding } = await stored(store, idOf(1))
      assert.deepEqual([output, outputEncoding], ['', 'base64'])
    },
  },
  {
    name: 'a task that completed without its output, or with a complaint about it, keeps the reason',
    async run(store) {
      const tagged = { tags: { a: 'b' }, maxReschedules: 7 }
      await insert(store, task(1, tagged), task(2))
      const { leased } = await store.claim(want())
      const endings = [
        { text: null, encoding: 'json' as const, error: AWKWARD },
        { text: '{"a":1}', encoding: 'json' as const, error: 'output.a: too small' },
      ]
      const changes = leased.map((one, i) => machine.complete(one, { token: one.lease!.token }, endings[i]!, NOW + 1))
      assert.deepEqual(await store.commit(changes), ['written', 'written'])
      const [first, second] = [await stored(store, idOf(1)), await stored(store, idOf(2))]
      assert.deepEqual([first.output, first.outputError], [null, AWKWARD])
      assert.deepEqual([first.tags, first.maxReschedules], [tagged.tags, 7])
      assert.deepEqual([second.output, second.outputError], ['{"a":1}', 'output.a: too small'])
      const listed = (await store.list({}, { order: 'oldest', limit: 2, now: NOW })).tasks
      assert.deepEqual(
        listed.map(({ outputError }) => outputError),
        [AWKWARD, 'output.a: too small'],
      )
      // As imported from another store.
      await insert(store, { ...first, id: idOf(3), idempotencyKey: null })
      assert.equal((await stored(store, idOf(3))).outputError, AWKWARD)
    },
  },
  {
    name: 'a worker id with quotes and backslashes is kept in lease and history',
    async run(store) {
      await insert(store, task(1))
      const leased = await claimOne(store, { workerId: AWKWARD })
      assert.equal(leased.lease?.workerId, AWKWARD)
      const { lease, history } = await stored(store, idOf(1))
      assert.equal(lease?.workerId, AWKWARD)
      assert.equal(history[1]?.by, AWKWARD)
      await commitAndCompare(store, idOf(1), failAt(NOW + 1))
    },
  },
  {
    name: 'an op with quotes and backslashes is kept in lease and history',
    async run(store) {
      await insert(store, task(1), task(2))
      const { leased } = await store.claim(want({ op: AWKWARD }))
      for (const { id, lease } of leased) {
        assert.ok(lease!.token.startsWith(`${AWKWARD}.`))
        assert.equal((await stored(store, id)).history[1]?.op, lease!.token)
        assert.deepEqual(await store.renew([{ id, token: lease!.token, leaseTtl: 5 }], NOW), ['held'])
      }
    },
  },
  {
    name: 'errors, reasons and names with quotes and backslashes are kept in record and history',
    async run(store) {
      await insert(store, task(1))
      await commitAndCompare(store, idOf(1), claimAt(NOW))
      await commitAndCompare(
        store,
        idOf(1),
        failAt(NOW + 1, Object.assign(new Error(AWKWARD), { name: AWKWARD, stack: AWKWARD })),
      )
      await commitAndCompare(store, idOf(1), cancelAt(NOW + 2, AWKWARD))
      await commitAndCompare(store, idOf(1), (record) =>
        machine.retry(record, { now: NOW + 3, by: AWKWARD, op: AWKWARD }),
      )
      const { history } = await stored(store, idOf(1))
      assert.equal(history.length, 5)
      assert.equal(history[4]?.op, AWKWARD)
    },
  },
  {
    name: 'an error of any length and make is kept as the core cut it',
    async run(store) {
      const errors = [
        'x'.repeat(100_000),
        `${'x'.repeat(199)}🪢${'y'.repeat(100)}`,
        '🪢'.repeat(9_000),
        '\0'.repeat(300),
        '\ud800'.repeat(300),
        '',
      ]
      for (const [i, message] of errors.entries()) {
        await insert(store, task(i + 1))
        await commitAndCompare(store, idOf(i + 1), claimAt(NOW))
        const { history } = await commitAndCompare(store, idOf(i + 1), failAt(NOW + 1, new Error(message)))
        assert.ok(
          history[2]?.error?.isWellFormed(),
          'a history entry holds half a character, which not every store can keep',
        )
      }
    },
  },
  {
    name: 'tags of any text are kept',
    async run(store) {
      const tags = Object.fromEntries(
        [AWKWARD.slice(0, 20), '__proto__', 'constructor', ' ', '🪢'].map((name) => [name, AWKWARD]),
      )
      await insert(store, task(1, { tags }))
      same(await stored(store, idOf(1)), task(1, { tags }))
      assert.deepEqual((await claimOne(store)).tags, tags)
    },
  },
  {
    name: 'instants at the ends of the calendar are kept to the millisecond',
    async run(store) {
      const last = 8_640_000_000_000_000
      const ends = task(1, { availableAt: 1, createdAt: 1, updatedAt: 1, expiresAt: last, priority: 1_000 })
      await insert(store, ends)
      same(await stored(store, idOf(1)), ends)
      const leased = await claimOne(store, { now: last - 10, leaseTtl: 10 })
      assert.deepEqual(leased.lease?.expiresAt, last)
      same(await stored(store, idOf(1)), { ...leased, history: (await stored(store, idOf(1))).history })
    },
  },
]
