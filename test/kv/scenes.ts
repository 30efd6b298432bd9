/** What a process may be doing when it dies: each scene is the calls of one process, after some that succeeded. */
import * as machine from '../../src/core/machine.ts'
import type { TaskRecord } from '../../src/core/task.ts'
import type { Insertion, Store } from '../../src/store/store.ts'
import { claimOne, idOf, keyed, task, want } from '../../src/testing/conformance/build.ts'

/** The tests begin at this time, also by the store's clock. */
export const NOW = 10_000_000

export interface Scene {
  readonly name: string
  /** By a process that is not disturbed. */
  before?(store: Store): Promise<void>
  /** How much later the disturbed process runs. */
  readonly later?: number
  /** By the disturbed process. Another process may repeat it. */
  run(store: Store): Promise<void>
  /** Tasks that must exist once `run` was answered or repeated. */
  readonly tasks: readonly number[]
  /** Tasks that must be gone. */
  readonly removes?: readonly number[]
}

const at = { now: NOW }
export const fresh = (n: number, fields: Partial<TaskRecord> = {}): TaskRecord =>
  task(n, { createdAt: NOW, updatedAt: NOW, availableAt: NOW, ...fields })

export const withKey = (n: number, key: string): Insertion => {
  const insertion = keyed(n, key, { expiresAt: NOW + 86_400_000 })
  return { ...insertion, task: { ...insertion.task, createdAt: NOW, updatedAt: NOW, availableAt: NOW } }
}

const insertAll = async (store: Store, ...insertions: readonly Insertion[]): Promise<void> => {
  await store.insert(insertions, at)
}

const look = (store: Store, now = NOW): Promise<TaskRecord> => claimOne(store, { now, leaseTtl: 5_000, limit: 1 })
const held = (record: TaskRecord) => ({ token: record.lease!.token })

/** The running task, claimed now if it was not yet. */
const running = async (store: Store): Promise<TaskRecord | null> => {
  const [one] = (await store.list({ views: [{ status: 'running' }] }, { order: 'oldest', limit: 1, now: NOW })).tasks
  if (one !== undefined) return one
  return (await store.claim(want({ now: NOW, leaseTtl: 5_000, limit: 1 }))).leased[0] ?? null
}

const ended = async (store: Store, insertion: Insertion): Promise<void> => {
  await insertAll(store, insertion)
  const leased = await look(store)
  await store.commit([machine.complete(leased, held(leased), { text: '1', encoding: 'json' }, NOW + 1)])
}

const removing = async (store: Store, endKey: boolean): Promise<void> => {
  const [record] = await store.get([idOf(1)])
  if (record) await store.remove([{ id: record.id, revision: record.revision, endKey }])
}

const LONG = JSON.stringify('long'.repeat(100))

export const scenes: readonly Scene[] = [
  { name: 'an insert', run: (store) => insertAll(store, { task: fresh(1) }, { task: fresh(2) }), tasks: [1, 2] },
  { name: 'an insert under a key', run: (store) => insertAll(store, withKey(1, 'k')), tasks: [1] },
  {
    name: 'an insert of a batch, which shares its hint',
    run: (store) => insertAll(store, ...[1, 2, 3, 4].map((n) => ({ task: fresh(n, n === 3 ? { input: LONG } : {}) }))),
    tasks: [1, 2, 3, 4],
  },
  {
    name: 'an insert of a batch under keys, one of which stands already',
    before: (store) => insertAll(store, withKey(1, 'k')),
    run: (store) => insertAll(store, withKey(2, 'a'), withKey(3, 'b'), withKey(4, 'k'), withKey(5, 'c')),
    tasks: [2, 3, 5, 1],
  },
  {
    name: 'the claims of most of a batch, and their ends',
    before: (store) => insertAll(store, ...[1, 2, 3, 4].map((n) => ({ task: fresh(n) }))),
    run: async (store) => {
      await store.claim(want({ now: NOW, leaseTtl: 5_000, limit: 3 }))
      const leased = (await store.list({ views: [{ status: 'running' }] }, { order: 'oldest', limit: 4, now: NOW }))
        .tasks
      const failure = { error: new Error('no'), permanent: false, now: NOW + 1, random: 0.9 }
      await store.commit(
        leased.map((record, n) =>
          n === 1
            ? machine.fail(record, held(record), failure)
            : machine.complete(record, held(record), { text: '1', encoding: 'json' }, NOW + 1),
        ),
      )
    },
    tasks: [1, 2, 3, 4],
  },
  {
    name: 'an insert under a key with a long input',
    run: (store) => {
      const insertion = withKey(1, 'k')
      return insertAll(store, { ...insertion, task: { ...insertion.task, input: LONG } })
    },
    tasks: [1],
  },
  {
    name: 'an insert under a key whose time is over',
    before: async (store) => {
      const insertion = withKey(1, 'k')
      await ended(store, { ...insertion, key: { ...insertion.key!, expiresAt: NOW - 1, exact: true } })
      await removing(store, false)
    },
    run: (store) => insertAll(store, withKey(2, 'k')),
    tasks: [2],
  },
  {
    name: 'a claim and its end',
    before: (store) => insertAll(store, { task: fresh(1, { input: LONG }) }),
    run: async (store) => {
      const leased = await running(store)
      if (leased === null) return
      await store.commit([machine.complete(leased, held(leased), { text: LONG, encoding: 'json' }, NOW + 1)])
    },
    tasks: [1],
  },
  {
    name: 'a failure, which waits to be tried again',
    before: (store) => insertAll(store, { task: fresh(1) }),
    run: async (store) => {
      const leased = await running(store)
      if (leased === null) return
      const facts = { error: new Error('no'), permanent: false, now: NOW + 1, random: 0.9 }
      await store.commit([machine.fail(leased, held(leased), facts)])
    },
    tasks: [1],
  },
  {
    name: 'a sleep that extends the expiry',
    before: (store) => insertAll(store, { task: fresh(1, { expiresAt: NOW + 90_000 }) }),
    run: async (store) => {
      const leased = await running(store)
      if (leased === null) return
      const facts = { delay: 70_000, extendExpiration: 500_000, now: NOW + 1 }
      await store.commit([machine.reschedule(leased, held(leased), facts)])
    },
    tasks: [1],
  },
  {
    name: 'heartbeats with progress',
    before: async (store) => {
      await insertAll(store, { task: fresh(1) })
      await look(store)
    },
    run: async (store) => {
      const leased = await running(store)
      if (leased?.lease == null) return
      const { token } = leased.lease
      for (const progress of [LONG, '2', LONG])
        await store.renew([{ id: leased.id, token, leaseTtl: 6_000, progress }], NOW + 2)
    },
    tasks: [1],
  },
  {
    name: 'a retry by hand of one that had been cancelled',
    before: async (store) => {
      await insertAll(store, { task: fresh(1) })
      const [record] = await store.get([idOf(1)])
      await store.commit([machine.cancel(record!, { now: NOW, by: 'operator', op: 'cancel' })!])
    },
    run: async (store) => {
      const [record] = await store.get([idOf(1)])
      if (record?.status !== 'cancelled') return
      await store.commit([machine.retry(record, { now: NOW + 1, by: 'operator', op: 'retry' })])
    },
    tasks: [1],
  },
  ...[true, false].map(
    (endKey): Scene => ({
      name: endKey ? 'a removal that ends the key' : 'a removal that leaves the key',
      before: (store) => ended(store, withKey(1, 'k')),
      run: (store) => removing(store, endKey),
      tasks: [],
      removes: [1],
    }),
  ),
  {
    name: 'an insert of one that has ended elsewhere',
    run: (store) => insertAll(store, { task: fresh(1, { status: 'completed', completedAt: NOW - 90_000 }) }),
    tasks: [1],
  },
  {
    name: 'an archive, and back',
    before: (store) => ended(store, { task: fresh(1) }),
    run: async (store) => {
      const actor = { now: NOW + 2, by: 'operator', op: 'archive' }
      for (const move of [machine.archive, machine.unarchive]) {
        const [record] = await store.get([idOf(1)])
        if (move === machine.unarchive && record?.status !== 'archived') return
        await store.commit([move(record!, actor)].filter((change) => change !== null))
      }
    },
    tasks: [1],
  },
  {
    name: 'a replay, which fails again',
    before: async (store) => {
      await insertAll(store, { task: fresh(1) })
      const leased = await look(store)
      const facts = { error: new Error('no'), permanent: true, now: NOW + 1, random: 0.9 }
      await store.commit([machine.fail(leased, held(leased), facts)])
    },
    run: async (store) => {
      const [record] = await store.get([idOf(1)])
      if (record?.status === 'failed' && record.attempts === 1)
        await store.commit([machine.retry(record, { now: NOW + 2, by: 'operator', op: 'retry' })])
      const leased = await running(store)
      if (leased === null) return
      const facts = { error: new Error('again'), permanent: true, now: NOW + 3, random: 0.9 }
      await store.commit([machine.fail(leased, held(leased), facts)])
    },
    tasks: [1],
  },
  {
    name: 'a sweep of tombstones',
    before: async (store) => {
      for (const [n, endKey] of [
        [1, true],
        [2, false],
      ] as const) {
        await ended(store, withKey(n, `swept-${n}`))
        const [record] = await store.get([idOf(n)])
        await store.remove([{ id: idOf(n), revision: record!.revision, endKey }])
      }
    },
    later: 2 * 86_400_000,
    // The first removal of a process sweeps.
    run: async (store) => {
      await store.remove([{ id: idOf(3), revision: 1, endKey: false }])
    },
    tasks: [],
    removes: [1, 2],
  },
]
