/** Claims under the limits of a queue: places, turns of groups, and claims of one task by its id. */
import assert from 'node:assert/strict'
import { amend } from '../../core/amend.ts'
import type { ClaimLimits, GroupTurns } from '../../core/flow/group-turns.ts'
import * as machine from '../../core/machine.ts'
import { type TaskRecord, TaskStatus } from '../../core/task.ts'
import type { ClaimResult, Store } from '../../store/store.ts'
import {
  claimOne,
  commitAndCompare,
  idOf,
  ids,
  idsOf,
  insert,
  keyed,
  LEASE_TTL,
  NOW,
  stored,
  task,
  want,
} from './build.ts'
import type { Case } from './case.ts'

const UNBOUND: GroupTurns = { perGroup: null, after: null, mostEach: 1_000, without: [], only: null, passed: [] }

const atMost = (concurrency: number): ClaimLimits => ({ concurrency, notAfter: null, turns: null })

const inTurns = (turns: Partial<GroupTurns> = {}): ClaimLimits => ({
  concurrency: null,
  notAfter: null,
  turns: { ...UNBOUND, ...turns },
})

const claimed = (store: Store, limits: ClaimLimits, fields: Parameters<typeof want>[0] = {}): Promise<ClaimResult> =>
  store.claim(want({ limits, ...fields }))

const groupsOf = (tasks: readonly TaskRecord[]): string[] => tasks.map(({ group }) => group ?? '')

const sorted = (texts: readonly string[]): string[] => [...texts].sort()

/** `a1 a2 b1`: one task each, in this order. */
const insertGroups = (
  store: Store,
  groups: readonly (string | null)[],
  fields: Partial<TaskRecord> = {},
): Promise<void> => insert(store, ...groups.map((group, i) => task(i + 1, { group, ...fields })))

const ends: readonly (readonly [how: string, end: (held: TaskRecord) => ReturnType<typeof machine.release>])[] = [
  ['completed', (held) => machine.complete(held, tokenOf(held), { text: '1', encoding: 'json' }, NOW + 1)],
  [
    'failed',
    (held) => machine.fail(held, tokenOf(held), { error: new Error('x'), permanent: true, now: NOW + 1, random: 0 }),
  ],
  [
    'waiting for its retry',
    (held) => machine.fail(held, tokenOf(held), { error: new Error('x'), permanent: false, now: NOW + 1, random: 0.9 }),
  ],
  [
    'rescheduled',
    (held) => machine.reschedule(held, tokenOf(held), { delay: 60_000, extendExpiration: 0, now: NOW + 1 }),
  ],
]

const tokenOf = (held: TaskRecord): { token: string } => ({ token: held.lease!.token })

export const limitCases: readonly Case[] = [
  {
    name: 'a task of a group is found by the first claim of its queue, although this process has looked at another queue before',
    async run(store) {
      await store.claim(want({ queue: 'other' }))
      await insertGroups(store, ['acme'])
      const { leased } = await store.claim(want())
      assert.deepEqual(idsOf(leased), ids(1))
    },
  },
  {
    name: 'the group of a task is kept, is a filter, and can be amended',
    async run(store) {
      await insertGroups(store, ['acme', 'ändå "1" 🔑', null])
      assert.deepEqual(
        (await store.get(ids(1, 2, 3))).map((found) => found?.group),
        ['acme', 'ändå "1" 🔑', null],
      )
      const page = { order: 'oldest', limit: 10, now: NOW } as const
      assert.deepEqual(idsOf((await store.list({ group: 'ändå "1" 🔑' }, page)).tasks), ids(2))
      assert.deepEqual(await store.count({ group: 'acme' }, { cap: 10, now: NOW }), { count: 1, capped: false })
      const actor = { now: NOW + 1, by: 'op', op: 'amend-1' }
      await commitAndCompare(store, idOf(1), (found) => amend(found, actor, { group: 'other' }))
      await commitAndCompare(store, idOf(2), (found) => amend(found, { ...actor, op: 'amend-2' }, { group: null }))
      assert.deepEqual(idsOf((await store.list({ group: 'other' }, page)).tasks), ids(1))
      assert.equal(
        (
          await claimOne(store, {
            types: ['email'],
            limit: 1,
            now: NOW + 1,
            limits: inTurns({ only: new Map([['other', 1]]), without: [], mostEach: 1, after: '' }),
          })
        ).id,
        idOf(1),
      )
    },
  },
  {
    name: 'a queue without limits takes grouped tasks in claim order',
    needs: ['exact-order'],
    async run(store) {
      await insert(
        store,
        task(1, { group: 'b' }),
        task(2),
        task(3, { group: 'a' }),
        task(4, { group: 'b', type: 'sms' }),
        task(5, { type: 'sms', priority: 1 }),
        task(6, { group: 'c', expiresAt: NOW + 9_000 }),
      )
      const { leased } = await store.claim(want({ types: ['email', 'sms'] }))
      assert.deepEqual(idsOf(leased), ids(5, 1, 2, 3, 4, 6))
      assert.deepEqual(groupsOf(leased), ['', 'b', '', 'a', 'b', 'c'])
    },
  },
  {
    name: 'a claim leases no more than the concurrency of the queue leaves, over all workers and types',
    async run(store) {
      await insert(store, task(1), task(2, { type: 'sms' }), task(3), task(4, { queue: 'other' }), task(5))
      const first = await claimed(store, atMost(3), { limit: 2, workerId: 'one' })
      const second = await claimed(store, atMost(3), { limit: 10, workerId: 'two', types: ['email', 'sms'] })
      assert.deepEqual([first.leased.length, second.leased.length, second.isHeldBack], [2, 1, true])
      const third = await claimed(store, atMost(3))
      assert.deepEqual([third.leased.length, third.isHeldBack], [0, true])
      const elsewhere = await claimed(store, atMost(1), { queue: 'other' })
      assert.deepEqual([idsOf(elsewhere.leased), elsewhere.isHeldBack], [ids(4), false])
    },
  },
  {
    name: 'a limit that was lowered leaves no place until enough tasks have ended',
    async run(store) {
      await insert(store, task(1), task(2), task(3), task(4))
      const { leased } = await claimed(store, atMost(3), { limit: 3 })
      assert.equal((await claimed(store, atMost(2))).leased.length, 0)
      for (const [i, held] of leased.slice(0, 2).entries()) {
        assert.equal((await claimed(store, atMost(2))).leased.length, 0)
        await commitAndCompare(store, held.id, (found) =>
          machine.complete(found, tokenOf(held), { text: '1', encoding: 'json' }, NOW + i),
        )
      }
      assert.equal((await claimed(store, atMost(2))).leased.length, 1)
    },
  },
  ...ends.map(
    ([how, end]): Case => ({
      name: `a task that is ${how} leaves its place to the next`,
      async run(store) {
        await insertGroups(store, ['a', 'a', 'a'])
        const limits = { ...inTurns({ perGroup: 1 }), concurrency: 1 }
        const { leased } = await claimed(store, limits)
        assert.equal(leased.length, 1)
        assert.equal((await claimed(store, limits, { now: NOW + 1 })).leased.length, 0)
        await commitAndCompare(store, leased[0]!.id, end)
        assert.equal((await claimed(store, limits, { now: NOW + 2 })).leased.length, 1)
      },
    }),
  ),
  {
    name: 'a lapsed lease keeps its place until it is taken',
    async run(store) {
      await insertGroups(store, ['a', 'a'])
      const limits = inTurns({ perGroup: 1 })
      const [held] = (await claimed(store, limits)).leased
      const later = NOW + LEASE_TTL + 1
      const { leased, due } = await claimed(store, limits, { now: later })
      assert.deepEqual([leased.length, idsOf(due)], [0, [held!.id]])
      await commitAndCompare(store, held!.id, (found) => machine.loseLease(found, 'other', later, 0.9))
      assert.equal((await claimed(store, limits, { now: later })).leased.length, 1)
    },
  },
  {
    name: 'a cancelled run keeps its place until it has ended',
    async run(store) {
      await insertGroups(store, ['a', 'a'])
      const limits = inTurns({ perGroup: 1 })
      const [held] = (await claimed(store, limits)).leased
      await commitAndCompare(store, held!.id, (found) => machine.cancel(found, { now: NOW, by: 'op', op: 'cancel-1' }))
      assert.equal((await claimed(store, limits)).leased.length, 0)
      await commitAndCompare(store, held!.id, (found) => machine.release(found, tokenOf(held!), NOW + 1))
      assert.equal((await stored(store, held!.id)).status, TaskStatus.cancelled)
      assert.equal((await claimed(store, limits, { now: NOW + 1 })).leased.length, 1)
    },
  },
  {
    name: 'a group has at most its places, and those that have none do not hold up the others',
    async run(store) {
      await insertGroups(store, ['a', 'a', 'a', 'b', null, null, null])
      const { leased, full, isHeldBack } = await claimed(store, inTurns({ perGroup: 2 }))
      assert.deepEqual(sorted(groupsOf(leased)), ['', '', '', 'a', 'a', 'b'])
      assert.deepEqual([full, isHeldBack], [['a'], true])
      const again = await claimed(store, inTurns({ perGroup: 2 }))
      assert.deepEqual([again.leased.length, again.full, again.isHeldBack], [0, ['a'], true])
    },
  },
  {
    name: 'with nothing left that a limit holds back, a claim says so',
    async run(store) {
      await insertGroups(store, ['a', 'b', null])
      const { leased, full, isHeldBack } = await claimed(store, { ...inTurns({ perGroup: 1 }), concurrency: 3 })
      assert.deepEqual([leased.length, full, isHeldBack], [3, [], false])
    },
  },
  {
    name: 'groups take turns within a priority, across types, and ungrouped tasks are one group',
    async run(store) {
      await insert(
        store,
        ...Array.from({ length: 30 }, (_, i) => task(i + 1, { group: 'big' })),
        ...['a', 'b', null].flatMap((group, i) => [
          task(40 + 2 * i, { group, type: 'sms' }),
          task(41 + 2 * i, { group, expiresAt: NOW + 9_000 }),
        ]),
      )
      const types = ['email', 'sms']
      const first = await claimed(store, inTurns(), { limit: 4, types })
      assert.deepEqual(sorted(groupsOf(first.leased)), ['', 'a', 'b', 'big'])
      const after = groupsOf(first.leased).at(-1)!
      const second = await claimed(store, inTurns({ after }), { limit: 4, types })
      assert.deepEqual(sorted(groupsOf(second.leased)), ['', 'a', 'b', 'big'])
    },
  },
  {
    name: 'one turn after the other, claims of one task reach every group',
    async run(store) {
      await insertGroups(store, ['a', 'a', 'a', 'a', 'b', 'c', null])
      const turns: string[] = []
      for (let i = 0; i < 4; i++) {
        const { leased } = await claimed(store, inTurns({ after: turns.at(-1) ?? null }), { limit: 1 })
        turns.push(...groupsOf(leased))
      }
      assert.deepEqual(sorted(turns), ['', 'a', 'b', 'c'])
    },
  },
  {
    name: 'a higher priority goes before any turn',
    needs: ['exact-order'],
    async run(store) {
      await insert(
        store,
        task(1, { group: 'a' }),
        task(2, { group: 'b' }),
        task(3, { group: 'b', priority: 5 }),
        task(4, { group: 'b', priority: 5, availableAt: NOW + 50 }),
      )
      const { leased, next } = await claimed(store, inTurns({ perGroup: 1 }))
      assert.deepEqual(idsOf(leased), ids(3, 1))
      assert.ok(next !== null && next <= NOW + 50)
    },
  },
  {
    name: 'a claim takes at most as many of each group as it may, and none of groups that are left out',
    async run(store) {
      await insertGroups(store, ['a', 'a', 'b', 'b', 'c', 'c', null, null])
      const { leased } = await claimed(store, inTurns({ mostEach: 1, without: ['b'] }))
      assert.deepEqual(sorted(groupsOf(leased)), ['', 'a', 'c'])
    },
  },
  {
    name: 'a claim of some groups takes their tasks, as many as it may, and ungrouped ones',
    async run(store) {
      await insertGroups(store, ['a', 'a', 'b', 'b', 'c', null])
      const { leased } = await claimed(
        store,
        inTurns({
          only: new Map([
            ['a', 1],
            ['c', 5],
            ['none', 1],
          ]),
        }),
      )
      assert.deepEqual(sorted(groupsOf(leased)), ['', 'a', 'c'])
    },
  },
  {
    name: 'permits that are void lease nothing',
    async run(store) {
      await insertGroups(store, ['a', null])
      const limits = { ...inTurns(), notAfter: NOW }
      assert.equal((await claimed(store, limits, { now: NOW + 1 })).leased.length, 0)
      assert.equal((await claimed(store, { ...atMost(9), notAfter: NOW }, { now: NOW + 1 })).leased.length, 0)
      assert.equal((await claimed(store, limits)).leased.length, 2)
    },
  },
  {
    name: 'a claim of one task by its id takes that task alone, if it is due and there is a place',
    async run(store) {
      await insert(
        store,
        task(1, { group: 'a' }),
        task(2, { group: 'a' }),
        task(3, { group: 'b', availableAt: NOW + 9 }),
        task(4),
      )
      const limits = { ...inTurns({ perGroup: 1 }), concurrency: 2 }
      const one = (id: string): Promise<ClaimResult> => claimed(store, limits, { id, limit: 1 })
      assert.deepEqual(idsOf((await one(idOf(3))).leased), [])
      assert.deepEqual(idsOf((await one(idOf(2))).leased), ids(2))
      assert.deepEqual(idsOf((await one(idOf(1))).leased), [])
      assert.deepEqual(idsOf((await one(idOf(4))).leased), ids(4))
      assert.deepEqual(idsOf((await claimed(store, limits, { now: NOW + 20 })).leased), [])
    },
  },
  {
    name: 'claims beside each other lease no more than the limits of queue and group allow',
    async run(store) {
      await insertGroups(
        store,
        Array.from({ length: 40 }, (_, i) => `g${i % 5}`),
      )
      const limits = { ...inTurns({ perGroup: 2 }), concurrency: 7 }
      for (let round = 0; round < 3; round++) {
        const looks = await Promise.all(
          Array.from({ length: 8 }, (_, i) => claimed(store, limits, { limit: 4, workerId: `worker-${i}` })),
        )
        const running = (
          await store.list({ views: [{ status: 'running' }] }, { order: 'oldest', limit: 100, now: NOW })
        ).tasks
        assert.ok(running.length <= 7, `${running.length} tasks run`)
        for (const group of new Set(groupsOf(running)))
          assert.ok(running.filter((held) => held.group === group).length <= 2, `too many of ${group}`)
        for (const held of looks.flatMap(({ leased }) => leased))
          await commitAndCompare(store, held.id, (found) =>
            machine.complete(found, tokenOf(held), { text: '1', encoding: 'json' }, NOW),
          )
      }
      let left = 40
      for (let look = 0; look < 60 && left > 0; look++) {
        for (const held of (await claimed(store, limits)).leased)
          await commitAndCompare(store, held.id, (found) =>
            machine.complete(found, tokenOf(held), { text: '1', encoding: 'json' }, NOW),
          )
        left = (await store.count({ views: [{ status: 'pending' }] }, { cap: 100, now: NOW })).count
      }
      assert.equal(left, 0, 'every task has its place in the end')
    },
  },
  {
    name: 'the groups that wait are told in the order of their turns',
    async run(store) {
      if (store.waitingGroups === undefined) return
      await insert(
        store,
        task(1, { group: 'a' }),
        task(2, { group: 'b', type: 'sms' }),
        task(3, { group: 'c', availableAt: NOW + 5 }),
        task(4),
        task(5, { group: 'd' }),
      )
      const asked = { queue: 'default', types: null, after: null, limit: 10, now: NOW }
      const all = await store.waitingGroups(asked)
      assert.deepEqual(sorted(all), ['a', 'b', 'd'])
      assert.deepEqual(sorted(await store.waitingGroups({ ...asked, types: ['email'] })), ['a', 'd'])
      const [first] = all
      assert.deepEqual((await store.waitingGroups({ ...asked, after: first!, limit: 2 })).length, 2)
      assert.ok(!(await store.waitingGroups({ ...asked, after: first!, limit: 2 })).includes(first!))
    },
  },
  {
    name: 'a key that stands for the task that it may replace passes to the new one',
    async run(store) {
      const put = async (insertion: ReturnType<typeof keyed>, replaces?: string) =>
        (await store.insert([{ ...insertion, ...(replaces === undefined ? null : { replaces }) }], { now: NOW }))[0]!
      assert.equal((await put(keyed(1, 'k'))).outcome, 'created')
      assert.equal((await put(keyed(2, 'k'), idOf(9))).outcome, 'existing')
      assert.equal((await put(keyed(2, 'k'), idOf(1))).outcome, 'created')
      assert.equal((await store.find('k'))?.task?.id, idOf(2))
      assert.equal((await stored(store, idOf(1))).status, 'pending')
      const third = await put(keyed(3, 'k'), idOf(1))
      assert.deepEqual([third.outcome, third.outcome === 'existing' && third.task?.id], ['existing', idOf(2)])
      assert.equal((await store.get(ids(3)))[0], null)
    },
  },
]
