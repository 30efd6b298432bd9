/** Closing: calls made before it are answered, calls made after it are refused. */
import assert from 'node:assert/strict'
import { isHoldfastError } from '../../core/errors.ts'
import type { Store } from '../../store/store.ts'
import { idOf, insert, keyed, NOW, stored, task, want } from './build.ts'
import type { Case } from './case.ts'
import { cancelAt } from './moves.ts'

const calls = (store: Store): Readonly<Record<string, () => Promise<unknown>>> => ({
  now: () => store.now(),
  insert: () => store.insert([{ task: task(2) }], { now: NOW }),
  claim: () => store.claim(want()),
  commit: () => store.commit([cancelAt(NOW)(task(1))!]),
  renew: () => store.renew([{ id: idOf(1), token: 'any', leaseTtl: 5 }], NOW),
  remove: () => store.remove([{ id: idOf(1), revision: 1, endKey: false }]),
  get: () => store.get([idOf(1)]),
  find: () => store.find('k'),
  list: () => store.list({}, { order: 'oldest', limit: 1, now: NOW }),
  count: () => store.count({}, { cap: 1, now: NOW }),
  'documents.get': () => store.documents.get('a'),
  'documents.put': () => store.documents.put('a', 'b', 0),
  'documents.list': () => store.documents.list(''),
  'documents.delete': () => store.documents.delete('a', 1),
  ...(store.detachedKeys && {
    'detachedKeys.list': () => store.detachedKeys!.list({ limit: 1 }),
    'detachedKeys.put': () => store.detachedKeys!.put([keyed(1, 'k').key], NOW),
  }),
})

export const closeCases: readonly Case[] = [
  {
    name: 'the store reports its time',
    async run(store) {
      const { at, uncertainty } = await store.now()
      assert.ok(Number.isInteger(at) && at > 1_700_000_000_000, `${at} is not a time in milliseconds`)
      assert.ok(uncertainty >= 0)
      const later = await store.now()
      assert.ok(later.at >= at, 'time went back')
    },
  },
  {
    name: 'a now of null is the time of the store itself',
    async run(store) {
      const { at, uncertainty } = await store.now()
      const soon = at + 3_600_000 + uncertainty
      await insert(store, task(1), task(2, { availableAt: soon }), task(3, { expiresAt: at - uncertainty }))
      const { leased, due } = await store.claim(want({ now: null }))
      assert.deepEqual(
        leased.map(({ id }) => id),
        [idOf(1)],
      )
      assert.deepEqual(
        due.map(({ id }) => id),
        [idOf(3)],
      )
      const { lease, history } = await stored(store, idOf(1))
      assert.ok(lease!.claimedAt >= at - uncertainty && lease!.claimedAt < soon)
      assert.equal(history[1]?.at, lease!.claimedAt)
      assert.deepEqual(leased[0]?.lease, lease)
      assert.deepEqual(await store.renew([{ id: idOf(1), token: lease!.token, leaseTtl: 60_000 }], null), ['held'])
      assert.ok((await stored(store, idOf(1))).lease!.expiresAt >= lease!.claimedAt + 60_000 - uncertainty)
      assert.equal(
        (await store.count({ views: [{ status: 'pending', available: 'later' }] }, { cap: 10, now: null })).count,
        1,
      )
    },
  },
  {
    name: 'a closed store refuses every call with STORE_CLOSED',
    async run(store) {
      await insert(store, task(1))
      await store.close()
      for (const [name, call] of Object.entries(calls(store))) {
        await assert.rejects(call, (error) => isHoldfastError(error, 'STORE_CLOSED'), `${name} should be refused`)
      }
    },
  },
  {
    name: 'a store can be closed twice, also at once',
    async run(store) {
      await Promise.all([store.close(), store.close()])
      await store.close()
    },
  },
  {
    name: 'calls made before close are answered, not refused: no caller hears that a written task was not written',
    async run(store) {
      await insert(store, task(9))
      const cancel = cancelAt(NOW)(await stored(store, idOf(9)))!
      const inserting = store.insert([{ task: task(1) }], { now: NOW })
      const committing = store.commit([cancel])
      const closing = store.close()
      assert.deepEqual(await inserting, [{ outcome: 'created' }])
      assert.deepEqual(await committing, ['written'])
      await closing
    },
  },
  {
    name: 'a closed store sends no more wake-ups',
    async run(store) {
      let rings = 0
      store.wake(() => rings++)
      await store.close()
      await store.insert([{ task: task(1) }], { now: NOW }).catch(() => null)
      assert.equal(rings, 0)
    },
  },
]
