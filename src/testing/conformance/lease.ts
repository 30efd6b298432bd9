/** Heartbeats: the token decides, and only the end of the lease and the progress are written. */
import assert from 'node:assert/strict'
import * as machine from '../../core/machine.ts'
import type { TaskRecord } from '../../core/task.ts'
import { claimOne, idOf, insert, LEASE_TTL, lookOnly, NOW, same, stored, task, want } from './build.ts'
import type { Case } from './case.ts'
import { cancelAt, completeAt } from './moves.ts'

const LAPSED = NOW + LEASE_TTL
const tokenOf = (record: TaskRecord): string => record.lease!.token
const loseAt = (record: TaskRecord, now: number) => machine.loseLease(record, 'worker-2', now, 0)

export const leaseCases: readonly Case[] = [
  {
    name: 'a renewal moves the end of the lease and nothing else',
    async run(store) {
      await insert(store, task(1))
      const leased = await claimOne(store)
      const before = await stored(store, idOf(1))
      assert.deepEqual(await store.renew([{ id: idOf(1), token: tokenOf(leased), leaseTtl: 700 }], NOW + 100), ['held'])
      same(await stored(store, idOf(1)), { ...before, lease: { ...before.lease!, expiresAt: NOW + 800 } })
    },
  },
  {
    name: 'a renewal stores the progress that comes with it and keeps the one before when none comes',
    async run(store) {
      await insert(store, task(1))
      const token = tokenOf(await claimOne(store))
      const before = await stored(store, idOf(1))
      const progress = '{"text":"50 % of \\"all\\"\\u0000", "emoji":"🪢"}'
      await store.renew([{ id: idOf(1), token, leaseTtl: 700, progress }], NOW + 1)
      await store.renew([{ id: idOf(1), token, leaseTtl: 700 }], NOW + 2)
      same(await stored(store, idOf(1)), { ...before, progress, lease: { ...before.lease!, expiresAt: NOW + 702 } })
    },
  },
  {
    name: 'a renewal after the end of the lease succeeds if no other worker took the task',
    async run(store) {
      await insert(store, task(1))
      const leased = await claimOne(store)
      assert.deepEqual(await store.renew([{ id: idOf(1), token: tokenOf(leased), leaseTtl: 100 }], LAPSED + 5_000), [
        'held',
      ])
      assert.deepEqual((await lookOnly(store, { now: LAPSED + 5_099 })).due, [])
    },
  },
  {
    name: 'a renewal says that a cancel was requested, and still holds the task',
    async run(store) {
      await insert(store, task(1))
      const leased = await claimOne(store)
      await store.commit([cancelAt(NOW + 1)(await stored(store, idOf(1)))!])
      assert.deepEqual(await store.renew([{ id: idOf(1), token: tokenOf(leased), leaseTtl: 900 }], NOW + 2), ['cancel'])
      assert.equal((await stored(store, idOf(1))).lease?.expiresAt, NOW + 902)
    },
  },
  {
    name: 'a renewal with a token that is not the current one is lost and writes nothing',
    async run(store) {
      await insert(store, task(1))
      const first = await claimOne(store)
      await store.commit([machine.release(first, { token: tokenOf(first) }, NOW + 1)])
      await claimOne(store, { now: NOW + 2 })
      const before = await stored(store, idOf(1))
      const renewals = [tokenOf(first), '', `${tokenOf(first)}x`].map((token) => ({
        id: idOf(1),
        token,
        leaseTtl: 9_000,
        progress: '1',
      }))
      assert.deepEqual(await store.renew(renewals, NOW + 3), ['lost', 'lost', 'lost'])
      same(await stored(store, idOf(1)), before)
    },
  },
  {
    name: 'a renewal of a task that is pending, ended or gone is lost',
    async run(store) {
      await insert(store, task(1), task(2), task(3))
      const { leased } = await store.claim(want({ limit: 2 }))
      const [one, two] = leased
      await store.commit([machine.release(one!, { token: tokenOf(one!) }, NOW + 1), completeAt(NOW + 1)(two!)!])
      const pairs = [
        [one!.id, tokenOf(one!)],
        [two!.id, tokenOf(two!)],
        [idOf(99), 'any'],
      ] as const
      const renewals = pairs.map(([id, token]) => ({ id, token, leaseTtl: 100, progress: '1' }))
      assert.deepEqual(await store.renew(renewals, NOW + 2), ['lost', 'lost', 'lost'])
      assert.equal((await stored(store, one!.id)).progress, null)
      assert.equal((await stored(store, two!.id)).progress, null)
    },
  },
  {
    name: 'each renewal of a batch is answered by itself, in the order given',
    async run(store) {
      await insert(store, task(1), task(2))
      const { leased } = await store.claim(want())
      const good = leased.map((record) => ({ id: record.id, token: tokenOf(record), leaseTtl: 800 }))
      const crossed = { id: idOf(1), token: tokenOf(leased[1]!), leaseTtl: 9_000 }
      assert.deepEqual(await store.renew([good[0]!, crossed, good[1]!], NOW + 1), ['held', 'lost', 'held'])
      for (const { id } of leased) assert.equal((await stored(store, id)).lease?.expiresAt, NOW + 801)
    },
  },
  {
    name: 'a renewal between the look and the taking of a lapsed lease wins',
    async run(store) {
      await insert(store, task(1))
      const leased = await claimOne(store)
      const { due } = await lookOnly(store, { now: LAPSED })
      assert.deepEqual(await store.renew([{ id: idOf(1), token: tokenOf(leased), leaseTtl: 900 }], LAPSED + 1), [
        'held',
      ])
      const before = await stored(store, idOf(1))
      assert.deepEqual(await store.commit([loseAt(due[0]!, LAPSED + 2)]), ['conflict'])
      same(await stored(store, idOf(1)), before)
      assert.deepEqual(await store.commit([completeAt(LAPSED + 3)(leased)!]), ['written'])
    },
  },
  {
    name: 'a renewal between read and cancel does not conflict, and its end and progress stay',
    async run(store) {
      await insert(store, task(1))
      const leased = await claimOne(store)
      const read = await stored(store, idOf(1))
      await store.renew([{ id: idOf(1), token: tokenOf(leased), leaseTtl: 900, progress: '0.5' }], NOW + 10)
      assert.deepEqual(await store.commit([cancelAt(NOW + 11)(read)!]), ['written'])
      const after = await stored(store, idOf(1))
      assert.equal(after.cancelRequestedAt, NOW + 11)
      assert.equal(after.lease?.expiresAt, NOW + 910)
      assert.equal(after.progress, '0.5')
    },
  },
  {
    name: 'a renewal between claim and complete does not conflict',
    async run(store) {
      await insert(store, task(1))
      const leased = await claimOne(store)
      await store.renew([{ id: idOf(1), token: tokenOf(leased), leaseTtl: 900, progress: '0.5' }], NOW + 10)
      assert.deepEqual(await store.commit([completeAt(NOW + 11)(leased)!]), ['written'])
      const after = await stored(store, idOf(1))
      assert.deepEqual([after.status, after.lease, after.progress], ['completed', null, '0.5'])
    },
  },
  {
    name: 'a lapsed lease that was not renewed is taken, and then its holder can neither renew nor complete',
    async run(store) {
      await insert(store, task(1))
      const leased = await claimOne(store)
      const { due } = await lookOnly(store, { now: LAPSED })
      assert.deepEqual(await store.commit([loseAt(due[0]!, LAPSED)]), ['written'])
      assert.deepEqual(await store.renew([{ id: idOf(1), token: tokenOf(leased), leaseTtl: 900 }], LAPSED + 1), [
        'lost',
      ])
      assert.deepEqual(await store.commit([completeAt(LAPSED + 2)(leased)!]), ['conflict'])
      assert.equal((await stored(store, idOf(1))).status, 'pending')
    },
  },
  {
    name: 'of two that take the same lapsed lease one does',
    async run(store) {
      await insert(store, task(1))
      await claimOne(store)
      const { due } = await lookOnly(store, { now: LAPSED })
      const taken = await Promise.all(
        [loseAt(due[0]!, LAPSED), loseAt(due[0]!, LAPSED + 1)].map((change) => store.commit([change])),
      )
      assert.deepEqual(taken.flat().sort(), ['conflict', 'written'])
      assert.equal((await stored(store, idOf(1))).retryCount, 1)
    },
  },
  {
    name: 'a task claimed by its id is renewed by that token',
    async run(store) {
      await insert(store, task(1))
      const change = machine.claim(await stored(store, idOf(1)), {
        token: 'by-id.1',
        workerId: 'worker-3',
        leaseTtl: 100,
        now: NOW,
      })
      assert.deepEqual(await store.commit([change]), ['written'])
      assert.deepEqual(await store.renew([{ id: idOf(1), token: 'by-id.1', leaseTtl: 300 }], NOW + 50), ['held'])
      const { lease } = await stored(store, idOf(1))
      assert.deepEqual(lease, {
        token: 'by-id.1',
        workerId: 'worker-3',
        claimedAt: NOW,
        expiresAt: NOW + 350,
        ttl: 100,
      })
    },
  },
  {
    name: 'a renewed lease ends no later than the renewal allows, and a lease keeps the length with which it was claimed',
    async run(store) {
      await insert(store, task(1), task(2))
      const [first, second] = (await store.claim(want({ limit: 2, leaseTtl: 5_000 }))).leased
      const renewals = [
        { id: first!.id, token: first!.lease!.token, leaseTtl: 5_000, notAfter: NOW + 5_200 },
        { id: second!.id, token: second!.lease!.token, leaseTtl: 2_000, notAfter: NOW + 50_000 },
      ]
      assert.deepEqual(await store.renew(renewals, NOW + 1_000), ['held', 'held'])
      const leases = [(await stored(store, first!.id)).lease, (await stored(store, second!.id)).lease]
      assert.deepEqual(
        leases.map((lease) => [lease?.expiresAt, lease?.ttl]),
        [
          [NOW + 5_200, 5_000],
          [NOW + 3_000, 5_000],
        ],
      )
      // The next claim has a length of its own.
      const release = machine.release(await stored(store, first!.id), { token: first!.lease!.token }, NOW + 1_500)
      assert.deepEqual(await store.commit([release]), ['written'])
      const [again] = (await store.claim(want({ leaseTtl: 9_000, now: NOW + 2_000, op: 'again' }))).leased
      const { lease } = await stored(store, first!.id)
      assert.deepEqual(
        [again?.id, again?.lease?.ttl, lease?.ttl, lease?.expiresAt],
        [first!.id, 9_000, 9_000, NOW + 11_000],
      )
    },
  },
]
