/** Wake-ups: only hints, but writes of this process always send them. */
import assert from 'node:assert/strict'
import type { Store } from '../../store/store.ts'
import { claimOne, idOf, insert, NOW, stored, task } from './build.ts'
import type { Case } from './case.ts'
import { cancelAt, completeAt, releaseAt } from './moves.ts'

/** The queues that were woken since the last call; null means all queues. */
const listen = (store: Store): { wasWoken(queue: string): boolean; off(): void } => {
  let wakeUps: (readonly string[] | null)[] = []
  const off = store.wake((queues) => wakeUps.push(queues))
  return {
    off,
    wasWoken: (queue) => {
      const heard = wakeUps.some((queues) => queues === null || queues.includes(queue))
      wakeUps = []
      return heard
    },
  }
}

export const wakeCases: readonly Case[] = [
  {
    name: 'an insert has woken the listeners of its queue when it resolves',
    async run(store) {
      const listener = listen(store)
      await insert(store, task(1, { queue: 'mail' }))
      assert.ok(listener.wasWoken('mail'))
      listener.off()
    },
  },
  {
    name: 'a change that makes a task pending has woken the listeners of its queue when it resolves',
    async run(store) {
      await insert(store, task(1, { queue: 'mail' }))
      const leased = await claimOne(store, { queue: 'mail' })
      const listener = listen(store)
      assert.deepEqual(await store.commit([releaseAt(NOW + 1)(leased)!]), ['written'])
      assert.ok(listener.wasWoken('mail'))
      listener.off()
    },
  },
  {
    name: 'every listener is woken until it unsubscribes',
    async run(store) {
      const [one, two] = [listen(store), listen(store)]
      await insert(store, task(1))
      assert.deepEqual([one.wasWoken('default'), two.wasWoken('default')], [true, true])
      one.off()
      one.off()
      await insert(store, task(2))
      assert.deepEqual([one.wasWoken('default'), two.wasWoken('default')], [false, true])
      two.off()
    },
  },
  {
    name: 'a listener that claims at once finds the task that woke it',
    async run(store) {
      const looks: Promise<unknown>[] = []
      const off = store.wake(() => looks.push(claimOne(store)))
      await insert(store, task(1))
      off()
      // A store may wake for no task, too: when it begins to listen, for example.
      await Promise.allSettled(looks)
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
