/** What a claim reports besides leases: overdue tasks, and when to claim again. */
import assert from 'node:assert/strict'
import { overdue } from '../../core/machine.ts'
import type { Change, Instant, TaskRecord } from '../../core/task.ts'
import {
  claimOne,
  idOf,
  ids,
  idsOf,
  insert,
  LEASE_TTL,
  lookOnly,
  NOW,
  same,
  stored,
  task,
  want,
  withoutHistory,
} from './build.ts'
import type { Case } from './case.ts'
import { cancelAt, completeAt } from './moves.ts'

const LAPSED = NOW + LEASE_TTL

const decided = (record: TaskRecord, now: Instant): Change =>
  overdue(record, { now, by: 'worker-2', op: `look-at-${record.id}` }, 0.5)!

export const dueCases: readonly Case[] = [
  {
    name: 'what is overdue is reported from every queue of the store, whichever is looked at and whatever types are asked for',
    needs: ['due-of-all-queues'],
    async run(store) {
      await insert(store, task(1, { queue: 'left' }), task(2, { queue: 'right', expiresAt: LAPSED }), task(3))
      await claimOne(store, { queue: 'left' })
      const { due } = await lookOnly(store, { queue: 'empty', types: ['nothing'], now: LAPSED })
      assert.deepEqual(idsOf(due).sort(), ids(1, 2))
      assert.equal((await lookOnly(store, { queue: 'empty', now: LAPSED, dueLimit: 1 })).due.length, 1)
    },
  },
  {
    name: 'a lapsed lease is reported from the instant it ends, as stored but without history',
    async run(store) {
      await insert(store, task(1))
      await claimOne(store)
      assert.deepEqual((await lookOnly(store, { now: LAPSED - 1 })).due, [])
      const { due } = await lookOnly(store, { now: LAPSED })
      assert.equal(due.length, 1)
      same(due[0], withoutHistory(await stored(store, idOf(1))))
    },
  },
  {
    name: 'a pending task is reported from the instant it expires, as stored but without history',
    async run(store) {
      await insert(store, task(1, { expiresAt: NOW + 10, tags: { a: 'b' } }))
      assert.deepEqual((await lookOnly(store, { now: NOW + 9 })).due, [])
      const { due } = await lookOnly(store, { now: NOW + 10 })
      assert.equal(due.length, 1)
      same(due[0], withoutHistory(await stored(store, idOf(1))))
    },
  },
  {
    name: 'a task that expires before it is available is reported',
    async run(store) {
      await insert(store, task(1, { availableAt: NOW + 500, expiresAt: NOW + 10 }))
      assert.deepEqual(idsOf((await lookOnly(store, { now: NOW + 10 })).due), ids(1))
    },
  },
  {
    name: 'a running task is not reported because its expiry has passed',
    async run(store) {
      await insert(store, task(1, { expiresAt: NOW + 10 }))
      await claimOne(store)
      assert.deepEqual((await lookOnly(store, { now: NOW + 20 })).due, [])
    },
  },
  {
    name: 'one look leases what is ready and reports what is overdue',
    async run(store) {
      await insert(store, task(1))
      await claimOne(store)
      await insert(store, task(2, { expiresAt: NOW + 10 }), task(3))
      const { leased, due } = await store.claim(want({ now: LAPSED }))
      assert.deepEqual(idsOf(leased), ids(3))
      assert.deepEqual(idsOf(due).sort(), ids(1, 2))
    },
  },
  {
    name: 'no more overdue tasks are reported than asked for, and all of them in the end',
    async run(store) {
      await insert(store, ...[1, 2, 3].map((n) => task(n)))
      await store.claim(want())
      await insert(store, ...[4, 5, 6].map((n) => task(n, { expiresAt: NOW + 1 })))
      assert.deepEqual((await lookOnly(store, { now: LAPSED, dueLimit: 0 })).due, [])
      const met = new Set<string>()
      for (let round = 0; round < 3; round++) {
        const { due } = await lookOnly(store, { now: LAPSED, dueLimit: 2 })
        assert.equal(due.length, 2)
        for (const { id } of due) met.add(id)
        assert.deepEqual(await store.commit(due.map((record) => decided(record, LAPSED))), ['written', 'written'])
      }
      assert.deepEqual([...met].sort(), ids(1, 2, 3, 4, 5, 6))
      assert.deepEqual((await lookOnly(store, { now: LAPSED, dueLimit: 2 })).due, [])
    },
  },
  {
    name: 'what the machine decides about a reported task can be written at once',
    async run(store) {
      await insert(store, task(1))
      await claimOne(store)
      await insert(store, task(2, { expiresAt: NOW + 10 }))
      const { due } = await lookOnly(store, { now: LAPSED })
      assert.deepEqual(await store.commit(due.map((record) => decided(record, LAPSED))), ['written', 'written'])
      assert.equal((await stored(store, idOf(1))).status, 'pending')
      assert.equal((await stored(store, idOf(2))).status, 'expired')
      assert.deepEqual((await lookOnly(store, { now: LAPSED })).due, [])
    },
  },
  {
    name: 'tasks that have ended are never reported',
    async run(store) {
      await insert(store, task(1), task(2, { expiresAt: NOW + 10 }))
      const leased = await claimOne(store, { limit: 1 })
      await store.commit([completeAt(NOW + 1)(leased)!, cancelAt(NOW + 1)(await stored(store, idOf(2)))!])
      assert.deepEqual((await lookOnly(store, { now: NOW + 1_000_000 })).due, [])
    },
  },
  {
    name: 'the next look is no later than the next instant at which something is to be done',
    async run(store) {
      assert.equal((await lookOnly(store)).next, null, 'nothing is known of an empty store')
      const nextBy = async (instant: number, now = NOW): Promise<void> => {
        const { next } = await store.claim(want({ now }))
        assert.ok(next !== null && next <= instant, `${next} should be at most ${instant}`)
      }
      await insert(store, task(1, { availableAt: NOW + 3_000 }))
      await nextBy(NOW + 3_000)
      await insert(store, task(2, { availableAt: NOW + 4_000, expiresAt: NOW + 2_000 }))
      await nextBy(NOW + 2_000)
      await insert(store, task(3))
      await nextBy(NOW + LEASE_TTL)
    },
  },
  {
    name: 'the next look is exactly the next instant at which something is to be done',
    needs: ['exact-order'],
    async run(store) {
      // A claim that leased something may say to claim again at once.
      const nextOf = async (now: number, types: readonly string[] | null = null): Promise<number | null> => {
        const { leased, next } = await store.claim(want({ now, types }))
        return leased.length > 0 && next === now ? nextOf(now, types) : next
      }
      await insert(
        store,
        task(1, { availableAt: NOW + 300, type: 'a' }),
        task(2, { availableAt: NOW + 200, type: 'b', priority: -5 }),
      )
      assert.equal(await nextOf(NOW), NOW + 200)
      assert.equal(await nextOf(NOW, ['a']), NOW + 300)
      assert.equal(await nextOf(NOW + 200), NOW + 300, 'the other one is leased for longer than that')
      assert.equal(await nextOf(NOW + 300), NOW + 200 + LEASE_TTL)
    },
  },
  {
    name: 'a look that leases nothing says when to look again, also beside other calls',
    async run(store) {
      await insert(store, task(1, { availableAt: NOW + 300 }))
      const [look] = await Promise.all([
        lookOnly(store),
        store.insert([{ task: task(2, { queue: 'other' }) }], { now: NOW }),
      ])
      assert.ok(look.next !== null && look.next <= NOW + 300)
    },
  },
]
