/** The doorbell: a hint, but one that this process's own writes always ring. */
import assert from 'node:assert/strict'
import type { Store } from '../../store/store.ts'
import { claimOne, idOf, insert, NOW, stored, task } from './build.ts'
import type { Case } from './case.ts'
import { cancelAt, completeAt, releaseAt } from './moves.ts'

/** The queues that were rung for since the last time this was asked; null rings for all. */
const listen = (store: Store): { rung(queue: string): boolean; off(): void } => {
  let rings: (readonly string[] | null)[] = []
  const off = store.wake((queues) => rings.push(queues))
  return {
    off,
    rung: (queue) => {
      const heard = rings.some((queues) => queues === null || queues.includes(queue))
      rings = []
      return heard
    },
  }
}

export const wakeCases: readonly Case[] = [
  {
    name: 'an insert has rung for its queue when it resolves',
    async run(store) {
      const bell = listen(store)
      await insert(store, task(1, { queue: 'mail' }))
      assert.ok(bell.rung('mail'))
      bell.off()
    },
  },
  {
    name: 'a change that makes a task pending has rung for its queue when it resolves',
    async run(store) {
      await insert(store, task(1, { queue: 'mail' }))
      const leased = await claimOne(store, { queue: 'mail' })
      const bell = listen(store)
      assert.deepEqual(await store.commit([releaseAt(NOW + 1)(leased)!]), ['written'])
      assert.ok(bell.rung('mail'))
      bell.off()
    },
  },
  {
    name: 'every listener is rung, until it unsubscribes',
    async run(store) {
      const [one, two] = [listen(store), listen(store)]
      await insert(store, task(1))
      assert.deepEqual([one.rung('default'), two.rung('default')], [true, true])
      one.off()
      one.off()
      await insert(store, task(2))
      assert.deepEqual([one.rung('default'), two.rung('default')], [false, true])
      two.off()
    },
  },
  {
    name: 'a listener that looks at once finds what it was rung for',
    async run(store) {
      const looks: Promise<unknown>[] = []
      const off = store.wake(() => looks.push(claimOne(store)))
      await insert(store, task(1))
      off()
      await looks[0]
      assert.equal((await stored(store, idOf(1))).status, 'running')
    },
  },
  {
    name: 'writes without a listener are fine',
    async run(store) {
      await insert(store, task(1), task(2))
      const leased = await claimOne(store, { limit: 1 })
      assert.deepEqual(await store.commit([completeAt(NOW)(leased)!, cancelAt(NOW)(await stored(store, idOf(2)))!]), [
        'written',
        'written',
      ])
    },
  },
]
