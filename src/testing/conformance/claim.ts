/** Claims: identical to the machine's, each task to one worker, only tasks that may run. */
import assert from 'node:assert/strict'
import * as machine from '../../core/machine.ts'
import { applyChange, type TaskRecord } from '../../core/task.ts'
import type { ClaimRequest, Store } from '../../store/store.ts'
import {
  claimOne,
  idOf,
  ids,
  idsOf,
  insert,
  LEASE_TTL,
  leasedIds,
  moved,
  NOW,
  same,
  stored,
  task,
  want,
  withoutHistory,
} from './build.ts'
import type { Case } from './case.ts'
import { claimAt, population, type Story, stories } from './moves.ts'

/** Claims a task and compares the stored and the returned record with the machine's. */
const claimAsMachine = async (store: Store, before: TaskRecord, fields: Partial<ClaimRequest>): Promise<void> => {
  const wanted = want({ limit: 1, queue: before.queue, ...fields })
  const { leased } = await store.claim(wanted)
  assert.deepEqual(idsOf(leased), [before.id])
  const { workerId, leaseTtl, now } = wanted
  const change = machine.claim(before, { token: leased[0]!.lease!.token, workerId, leaseTtl, now: now! })
  const expected = applyChange(before, change)
  same(leased[0], withoutHistory(expected))
  same(await stored(store, before.id), expected)
}

/** The last pending record of a story after some move; null if there is none. */
const lastPending = ({ start, moves }: Story): TaskRecord | null => {
  const stages = moves.map((_, i) => moved(task(1, start), ...moves.slice(0, i + 1)))
  return stages.findLast(({ status }) => status === 'pending') ?? null
}

const pasts = stories
  .map((story) => ({ name: story.name, record: lastPending(story) }))
  .filter((past): past is { name: string; record: TaskRecord } => past.record !== null)

const LATE = NOW + 100_000

const options: Partial<TaskRecord> = {
  queue: 'mail',
  type: 'send:mail',
  input: 'AP8=',
  encoding: 'base64',
  priority: 7,
  expiresAt: LATE * 2,
  idempotencyKey: 'a key',
  maxRetries: null,
  maxReschedules: 5,
  retryPolicy: { base: 1, multiplier: 3, max: 9, jitter: 'none' },
  timeout: null,
  replayOf: idOf(70),
  scheduleId: 'nightly',
  tags: { a: 'b' },
}

export const claimCases: readonly Case[] = [
  {
    name: 'a new task is claimed exactly as the machine claims it',
    async run(store) {
      await insert(store, task(1))
      await claimAsMachine(store, task(1), {})
    },
  },
  {
    name: 'a task with every option is claimed exactly as the machine claims it',
    async run(store) {
      await insert(store, task(1, options))
      await claimAsMachine(store, task(1, options), { now: LATE, leaseTtl: 12_345, workerId: 'worker-7' })
    },
  },
  ...pasts.map(
    ({ name, record }): Case => ({
      name: `the pending task of one that ${name} is claimed exactly as the machine claims it`,
      async run(store) {
        await insert(store, record)
        await claimAsMachine(store, record, { now: record.availableAt })
      },
    }),
  ),
  {
    name: 'a task that was claimed, given back and claimed again has two claims in its history',
    async run(store) {
      await insert(store, task(1))
      const first = await claimOne(store)
      assert.deepEqual(await store.commit([machine.release(first, { token: first.lease!.token }, NOW + 5)]), [
        'written',
      ])
      await claimAsMachine(store, await stored(store, idOf(1)), { now: NOW + 6, workerId: 'worker-2' })
      const { history } = await stored(store, idOf(1))
      assert.deepEqual(
        history.map(({ n, move }) => [n, move]),
        [
          [1, 'submit'],
          [2, 'claim'],
          [3, 'release'],
          [4, 'claim'],
        ],
      )
    },
  },
  {
    name: 'tokens begin with the op of the look and are all different',
    async run(store) {
      await insert(store, ...[1, 2, 3, 4].map((n) => task(n)))
      const first = await store.claim(want({ op: 'one', limit: 2 }))
      const second = await store.claim(want({ op: 'two', limit: 2 }))
      const tokens = [...first.leased, ...second.leased].map(({ lease }) => lease!.token)
      assert.equal(new Set(tokens).size, 4)
      assert.deepEqual(
        tokens.map((token) => token.slice(0, 4)),
        ['one.', 'one.', 'two.', 'two.'],
      )
    },
  },
  {
    name: 'a task is leased no earlier than it is available',
    async run(store) {
      await insert(store, task(1, { availableAt: NOW + 10 }))
      assert.deepEqual(await leasedIds(store, { now: NOW + 9 }), [])
      assert.deepEqual(await leasedIds(store, { now: NOW + 10 }), ids(1))
    },
  },
  {
    name: 'a task is never leased at or after its expiry',
    async run(store) {
      await insert(
        store,
        task(1, { expiresAt: NOW + 10 }),
        task(2, { expiresAt: NOW + 10 }),
        task(3, { expiresAt: NOW + 11 }),
      )
      assert.deepEqual(await leasedIds(store, { now: NOW + 9, limit: 1 }), ids(1))
      assert.deepEqual(await leasedIds(store, { now: NOW + 10 }), ids(3))
      assert.equal((await stored(store, idOf(2))).status, 'pending', 'a look marks nothing by itself')
    },
  },
  {
    name: 'expired tasks in front do not hide the ones behind them',
    async run(store) {
      const expired = Array.from({ length: 30 }, (_, i) => task(i + 1, { expiresAt: NOW, priority: 5 }))
      await insert(store, ...expired, task(50), task(51))
      assert.deepEqual(await leasedIds(store, { limit: 2 }), ids(50, 51))
    },
  },
  {
    name: 'only pending tasks are leased',
    async run(store) {
      await insert(store, ...population.filter(({ status }) => status !== 'pending'))
      assert.deepEqual(await leasedIds(store, { now: LATE, limit: 100 }), [])
    },
  },
  {
    name: 'only tasks of the wanted types are leased',
    async run(store) {
      await insert(
        store,
        task(1, { type: 'a' }),
        task(2, { type: 'b' }),
        task(3, { type: 'c' }),
        task(4, { type: 'A' }),
        task(5, { type: 'ab' }),
      )
      assert.deepEqual(await leasedIds(store, { types: [] }), [])
      assert.deepEqual(await leasedIds(store, { types: ['unknown'] }), [])
      assert.deepEqual((await leasedIds(store, { types: ['a', 'c', 'a', 'unknown'] })).sort(), ids(1, 3))
      assert.deepEqual((await leasedIds(store, { types: null })).sort(), ids(2, 4, 5))
    },
  },
  {
    name: 'only tasks of the wanted queue are leased',
    async run(store) {
      await insert(
        store,
        task(1, { queue: 'a' }),
        task(2, { queue: 'b' }),
        task(3, { queue: 'A' }),
        task(4, { queue: 'a/b' }),
      )
      assert.deepEqual(await leasedIds(store, { queue: 'a' }), ids(1))
      assert.deepEqual(await leasedIds(store, { queue: 'a/' }), [])
      assert.deepEqual(await leasedIds(store, { queue: 'a/b' }), ids(4))
    },
  },
  {
    name: 'no more than the limit is leased, and the rest stays',
    async run(store) {
      await insert(store, ...[1, 2, 3, 4, 5].map((n) => task(n)))
      assert.equal((await leasedIds(store, { limit: 3 })).length, 3)
      assert.equal((await leasedIds(store, { limit: 3 })).length, 2)
      assert.equal((await leasedIds(store, { limit: 3 })).length, 0)
    },
  },
  {
    name: 'a limit of zero leases nothing',
    async run(store) {
      await insert(store, task(1))
      assert.deepEqual(await leasedIds(store, { limit: 0 }), [])
      same(await stored(store, idOf(1)), task(1))
    },
  },
  {
    name: 'concurrent looks never lease the same task, and together lease all',
    async run(store) {
      await insert(store, ...Array.from({ length: 20 }, (_, i) => task(i + 1, { type: i % 2 ? 'a' : 'b' })))
      const looks = await Promise.all(
        Array.from({ length: 8 }, (_, i) => store.claim(want({ limit: 4, workerId: `worker-${i}` }))),
      )
      const leased = looks.flatMap((look) => look.leased)
      assert.equal(new Set(idsOf(leased)).size, leased.length)
      assert.equal(new Set(leased.map(({ lease }) => lease!.token)).size, leased.length)
      const rest: string[] = []
      // Others may have released what they had no room for; `next` says when to claim again.
      for (let isMore = true; isMore && leased.length + rest.length < 20; ) {
        const look = await store.claim(want({ limit: 20 }))
        rest.push(...idsOf(look.leased))
        isMore = look.next !== null && look.next <= NOW
      }
      assert.equal(new Set([...idsOf(leased), ...rest]).size, 20)
      for (const { id, lease } of leased) assert.deepEqual((await stored(store, id)).lease, lease)
    },
  },
  {
    name: 'a task claimed by its id cannot be leased by a look, nor the other way round',
    async run(store) {
      await insert(store, task(1), task(2))
      const byId = claimAt(NOW)(await stored(store, idOf(1)))!
      assert.deepEqual(await store.commit([byId]), ['written'])
      const late = claimAt(NOW)(await stored(store, idOf(2)))!
      assert.deepEqual(await leasedIds(store), ids(2))
      assert.deepEqual(await store.commit([late]), ['conflict'])
      assert.equal((await stored(store, idOf(1))).lease?.expiresAt, NOW + LEASE_TTL)
    },
  },
]
