/** Optional reports of a store, which must be correct if present. */
import assert from 'node:assert/strict'
import { findingOf } from '../../core/observe/diagnosis.ts'
import { insert, NOW, stored, task } from './build.ts'
import type { Case } from './case.ts'

export const watchCases: readonly Case[] = [
  {
    name: 'the instant up to which changes are visible is never in the future, and never goes back',
    async run(store) {
      if (store.visibleUntil === undefined) return
      let before = Number.NEGATIVE_INFINITY
      for (let n = 1; n <= 3; n++) {
        const settled = await store.visibleUntil()
        await insert(store, task(n))
        const { at, uncertainty } = await store.now()
        assert.ok(settled <= at + uncertainty, 'settled is not later than now')
        assert.ok(settled >= before, 'settled does not go back')
        before = settled
      }
    },
  },
  {
    name: 'an examination reports facts that can be judged, and changes nothing',
    async run(store) {
      await insert(store, task(1))
      const before = await stored(store, task(1).id)
      for (const fact of (await store.examine?.()) ?? [])
        assert.match(findingOf(fact).verdict, /^(ok|warning|problem)$/)
      assert.deepEqual(await stored(store, task(1).id), before)
      assert.equal((await store.count({}, { cap: 10, now: NOW })).count, 1)
    },
  },
]
