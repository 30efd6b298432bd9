/** Changes are written under their revision, each independently, or not at all. */
import assert from 'node:assert/strict'
import * as machine from '../../core/machine.ts'
import { applyChange, type Change, type TaskRecord } from '../../core/task.ts'
import type { Store } from '../../store/store.ts'
import { claimOne, idOf, insert, NOW, same, stored, task, want } from './build.ts'
import type { Case } from './case.ts'
import { cancelAt, claimAt, completeAt, failAt, releaseAt, rescheduleAt } from './moves.ts'

const MANY = 40

/** Claimed together and ended at one instant, like one turn of a worker: a store may write them as one. */
const endAlike = async (store: Store): Promise<{ before: TaskRecord[]; changes: Change[] }> => {
  await insert(store, ...Array.from({ length: MANY }, (_, i) => task(i + 1)))
  const { leased } = await store.claim(want({ limit: MANY }))
  const before = await Promise.all(leased.map(({ id }) => stored(store, id)))
  return { before, changes: leased.map((record) => completeAt(NOW + 5)(record)!) }
}

export const commitCases: readonly Case[] = [
  {
    name: 'a change computed from an older revision is a conflict and writes nothing',
    async run(store) {
      await insert(store, task(1))
      const old = await stored(store, idOf(1))
      await store.commit([cancelAt(NOW + 1)(old)!])
      const before = await stored(store, idOf(1))
      assert.deepEqual(await store.commit([claimAt(NOW + 2)(old)!, cancelAt(NOW + 2)(old)!]), ['conflict', 'conflict'])
      same(await stored(store, idOf(1)), before)
    },
  },
  {
    name: 'a change of a task that was never there is gone',
    async run(store) {
      assert.deepEqual(await store.commit([cancelAt(NOW)(task(1))!]), ['gone'])
      assert.deepEqual(await store.get([idOf(1)]), [null])
    },
  },
  {
    name: 'a change of a task that was removed is gone and does not bring it back',
    async run(store) {
      await insert(store, task(1))
      const old = await stored(store, idOf(1))
      await store.commit([cancelAt(NOW + 1)(old)!])
      const ended = await stored(store, idOf(1))
      await store.remove([{ id: idOf(1), revision: ended.revision, endKey: false }])
      const retried = machine.retry(ended, { now: NOW + 2, by: 'operator', op: 'call' })
      assert.deepEqual(await store.commit([retried, cancelAt(NOW + 2)(old)!]), ['gone', 'gone'])
      assert.deepEqual(await store.get([idOf(1)]), [null])
    },
  },
  {
    name: 'each change of a batch is written or refused by itself, in the order given',
    async run(store) {
      await insert(store, task(1), task(2), task(3))
      const [one, two, three] = await Promise.all([1, 2, 3].map((n) => stored(store, idOf(n))))
      await store.commit([cancelAt(NOW + 1)(two!)!])
      const changes = [
        cancelAt(NOW + 2)(one!)!,
        claimAt(NOW + 2)(two!)!,
        cancelAt(NOW + 2)(task(9))!,
        claimAt(NOW + 2)(three!)!,
      ]
      assert.deepEqual(await store.commit(changes), ['written', 'conflict', 'gone', 'written'])
      const statuses = (await store.get([1, 2, 3].map(idOf))).map((record) => record?.status)
      assert.deepEqual(statuses, ['cancelled', 'cancelled', 'running'])
    },
  },
  {
    name: 'many changes of many kinds in one batch are all written as decided',
    async run(store) {
      const count = 24
      await insert(
        store,
        ...Array.from({ length: count }, (_, i) =>
          task(i + 1, { maxReschedules: i % 5 === 0 ? 0 : null, expiresAt: NOW + 9_000 }),
        ),
      )
      const { leased } = await store.claim(want({ limit: count }))
      const kinds = [
        completeAt(NOW + 5),
        failAt(NOW + 5),
        rescheduleAt(NOW + 5, 60, 5),
        releaseAt(NOW + 5),
        cancelAt(NOW + 5, 'why'),
      ]
      const before = await Promise.all(leased.map(({ id }) => stored(store, id)))
      const changes = leased.map((record, i) => kinds[i % kinds.length]!(record)!)
      assert.deepEqual(
        await store.commit(changes),
        changes.map(() => 'written'),
      )
      for (const [i, record] of before.entries()) same(await stored(store, record.id), applyChange(record, changes[i]!))
    },
  },
  {
    name: 'of two changes of one revision in one batch the first is written',
    async run(store) {
      await insert(store, task(1))
      const read = await stored(store, idOf(1))
      assert.deepEqual(await store.commit([cancelAt(NOW + 1)(read)!, claimAt(NOW + 2)(read)!]), ['written', 'conflict'])
      const after = await stored(store, idOf(1))
      assert.deepEqual([after.status, after.revision, after.history.length], ['cancelled', 2, 2])
    },
  },
  {
    name: 'of concurrent changes of one revision exactly one is written',
    async run(store) {
      await insert(store, task(1))
      const read = await stored(store, idOf(1))
      const committed = await Promise.all([1, 2, 3, 4, 5, 6].map((i) => store.commit([cancelAt(NOW + i)(read)!])))
      assert.equal(committed.flat().filter((outcome) => outcome === 'written').length, 1)
      const after = await stored(store, idOf(1))
      assert.deepEqual([after.revision, after.history.length], [2, 2])
    },
  },
  {
    name: 'a change decided on a leased task, which has no history, appends to the history that is stored',
    async run(store) {
      await insert(store, task(1))
      const leased = await claimOne(store)
      assert.deepEqual(leased.history, [])
      const before = await stored(store, idOf(1))
      const change = completeAt(NOW + 5)(leased)!
      assert.deepEqual(await store.commit([change]), ['written'])
      same(await stored(store, idOf(1)), applyChange(before, change))
    },
  },
  {
    name: 'a worker whose task was taken away cannot complete it, and its successor can',
    async run(store) {
      await insert(store, task(1))
      const first = await claimOne(store)
      await store.commit([machine.retry(first, { now: NOW + 1, by: 'operator', op: 'call' })])
      const second = await claimOne(store, { now: NOW + 2, workerId: 'worker-2' })
      assert.equal(second.attempts, first.attempts + 1)
      assert.deepEqual(await store.commit([completeAt(NOW + 3)(first)!]), ['conflict'])
      assert.deepEqual(await store.commit([completeAt(NOW + 4)(second)!]), ['written'])
    },
  },
  {
    name: 'many tasks that end alike are all written, each with its own history',
    async run(store) {
      const { before, changes } = await endAlike(store)
      assert.deepEqual(
        await store.commit(changes),
        changes.map(() => 'written'),
      )
      for (const [i, record] of before.entries()) same(await stored(store, record.id), applyChange(record, changes[i]!))
      assert.equal((await store.count({ views: [{ status: 'completed' }] }, { cap: 1_000, now: NOW + 9 })).count, MANY)
      assert.equal((await store.count({ views: [{ status: 'running' }] }, { cap: 1_000, now: NOW + 9 })).count, 0)
    },
  },
  {
    name: 'of many tasks that end alike, one that was changed meanwhile and one that is gone are reported, and all others written',
    async run(store) {
      const { before, changes } = await endAlike(store)
      const [taken, removed] = [before[7]!, before[20]!]
      const cancelled = cancelAt(NOW + 4)(removed)!
      await store.commit([machine.retry(taken, { now: NOW + 3, by: 'operator', op: 'call' }), cancelled])
      const completed = applyChange(
        applyChange(removed, cancelled),
        completeAt(NOW + 4)(applyChange(removed, cancelled))!,
      )
      await store.commit([completeAt(NOW + 4)(applyChange(removed, cancelled))!])
      assert.deepEqual(await store.remove([{ id: removed.id, revision: completed.revision, endKey: false }]), [
        'removed',
      ])
      const held = await stored(store, taken.id)
      assert.deepEqual(
        await store.commit(changes),
        changes.map(({ id }) => (id === taken.id ? 'conflict' : id === removed.id ? 'gone' : 'written')),
      )
      same(await stored(store, taken.id), held)
      assert.equal(
        (await store.count({ views: [{ status: 'completed' }] }, { cap: 1_000, now: NOW + 9 })).count,
        MANY - 2,
      )
      assert.deepEqual(
        await store.commit(changes),
        changes.map(({ id }) => (id === removed.id ? 'gone' : 'conflict')),
      )
    },
  },
  {
    name: 'committing nothing does nothing',
    async run(store) {
      assert.deepEqual(await store.commit([]), [])
    },
  },
]
