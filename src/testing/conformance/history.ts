/** A long history keeps its first entry, its last 99, and their numbers. */
import assert from 'node:assert/strict'
import * as machine from '../../core/machine.ts'
import { applyChange, HISTORY_KEPT, type TaskRecord } from '../../core/task.ts'
import type { Store } from '../../store/store.ts'
import { claimOne, commitAndCompare, idOf, insert, NOW, same, stored, task } from './build.ts'
import type { Case } from './case.ts'
import { cancelAt, claimAt, rescheduleAt } from './moves.ts'

const MOVES = 250

const keepsEnds = ({ history }: TaskRecord): void => {
  assert.equal(history.length, HISTORY_KEPT)
  assert.deepEqual(
    history.map(({ n }) => n),
    [1, ...Array.from({ length: HISTORY_KEPT - 1 }, (_, i) => MOVES + 1 - (HISTORY_KEPT - 2) + i)],
  )
  assert.equal(history[0]?.move, 'submit')
}

/** Claims and reschedules, like a task that polls something. Returns the record that the machine computes. */
const sleepFor = async (store: Store, moves: number): Promise<TaskRecord> => {
  let expected = task(1)
  for (let i = 0; i < moves; i += 2) {
    const now = NOW + i
    const leased = await claimOne(store, { now })
    expected = applyChange(
      expected,
      machine.claim(expected, { token: leased.lease!.token, workerId: 'worker-1', leaseTtl: 500, now }),
    )
    const change = rescheduleAt(now + 1, 0)(leased)!
    assert.deepEqual(await store.commit([change]), ['written'])
    expected = applyChange(expected, change)
    if (i % 20 === 0) same(await stored(store, idOf(1)), expected)
  }
  return expected
}

export const historyCases: readonly Case[] = [
  {
    name: 'a task that is leased and put to sleep 250 times keeps the first entry and the last 99',
    async run(store) {
      await insert(store, task(1))
      const expected = await sleepFor(store, MOVES)
      const record = await stored(store, idOf(1))
      same(record, expected)
      keepsEnds(record)
    },
  },
  {
    name: 'a task that is moved 250 times by hand keeps the first entry and the last 99',
    async run(store) {
      await insert(store, task(1))
      for (let i = 0; i < MOVES; i += 2) {
        await commitAndCompare(store, idOf(1), cancelAt(NOW + i))
        await commitAndCompare(store, idOf(1), (record) =>
          machine.retry(record, { now: NOW + i + 1, by: 'operator', op: `retry-${i}` }),
        )
      }
      keepsEnds(await stored(store, idOf(1)))
    },
  },
  {
    name: 'a task is claimed, renewed and reported alike however long its history is',
    async run(store) {
      await insert(store, task(1))
      await sleepFor(store, 110)
      const before = await stored(store, idOf(1))
      const after = await commitAndCompare(store, idOf(1), claimAt(NOW + 200))
      assert.equal(after.revision, before.revision + 1)
      assert.deepEqual(await store.renew([{ id: idOf(1), token: after.lease!.token, leaseTtl: 5 }], NOW + 200), [
        'held',
      ])
      same(await stored(store, idOf(1)), { ...after, lease: { ...after.lease!, expiresAt: NOW + 205 } })
    },
  },
]
