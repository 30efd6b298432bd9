/** Claims while a backlog is drained: they resume where the last one ended, and that must not show in the order. */
import { Client } from 'pg'
import { expect, onTestFinished, test } from 'vitest'
import { claimOrder } from '../../src/core/claim-order.ts'
import { release } from '../../src/core/machine.ts'
import { PAGE_WEIGHT } from '../../src/core/storage/page-weight.ts'
import type { TaskRecord } from '../../src/core/task.ts'
import { openPostgres } from '../../src/store/postgres/store.ts'
import type { ClaimRequest, Store } from '../../src/store/store.ts'
import { type Bench, begin, onPostgres } from './setup.ts'

/** How long a claim may resume, and some time for a busy machine. */
const RESUME_FOR = 250
const PATIENCE = 5_000

let ops = 0
const want = (types: readonly string[] | null, limit: number): ClaimRequest => ({
  queue: 'default',
  types,
  limit,
  workerId: 'w',
  op: `op-${++ops}`,
  leaseTtl: 60_000,
  dueLimit: 0,
  now: null,
})

onPostgres('while a backlog is drained', (url) => {
  const open = async ({ schema }: Bench): Promise<Store> => {
    const store = await openPostgres(url, { schema })
    onTestFinished(() => store.close())
    return store
  }

  /** Types of very different shares and ages, three priorities, some with an expiry. */
  const backlog = async (count: number): Promise<Bench> => {
    const bench = begin(url)
    const client = await bench.connect()
    const items = Array.from({ length: count }, (_, n) => ({
      type: n < count / 3 ? 'old' : n % 97 === 0 ? 'rare' : `type_${n % 7}`,
      input: n,
      priority: n % 5 === 0 ? 1 : n % 11 === 0 ? -1 : 0,
      ...(n % 4 === 0 ? { ttl: '1h' as const } : null),
    }))
    for (let at = 0; at < count; at += 500)
      for (const result of await client.submitMany(items.slice(at, at + 500))) if (!result.ok) throw result.error
    return bench
  }

  const claimAll = async (store: Store, limit: number): Promise<TaskRecord[]> => {
    const claimed: TaskRecord[] = []
    for (;;) {
      const { leased, next } = await store.claim(want(null, limit))
      claimed.push(...leased)
      if (leased.length === 0 && (next === null || next > Date.now())) return claimed
    }
  }

  test.each([1, 7, 100, 1_000])('claims of %d at a time come in exact order, and none is left out', async (limit) => {
    const count = limit === 1 ? 300 : 5_000
    const store = await open(await backlog(count))
    const claimed = await claimAll(store, limit)
    expect(claimed).toHaveLength(count)
    const ids = claimed.map(({ id }) => id)
    expect(ids).toEqual(claimed.toSorted(claimOrder).map(({ id }) => id))
  })

  test('after a claim of large payloads, the next takes only as many as one answer may hold', async () => {
    const bench = begin(url)
    const client = await bench.connect()
    const input = 'x'.repeat(600_000)
    await client.submitMany(Array.from({ length: 30 }, () => ({ type: 'large', input })))
    const store = await open(bench)
    expect((await store.claim(want(null, 2))).leased).toHaveLength(2)
    const second = await store.claim(want(null, 100))
    expect(second.leased).toHaveLength(Math.floor(PAGE_WEIGHT / (input.length + 2)))
    // There is more, and it is claimed at once.
    expect(second.next).toBeLessThanOrEqual(Date.now())
    expect(await claimAll(store, 100)).toHaveLength(28 - second.leased.length)
  })

  test('a claim that takes everything takes everything', async () => {
    const store = await open(await backlog(200))
    expect((await store.claim(want(null, 200))).leased).toHaveLength(200)
    expect((await store.claim(want(null, 200))).leased).toHaveLength(0)
  })

  test('claims of several processes beside each other lease every task once', async () => {
    const bench = await backlog(6_000)
    const stores = await Promise.all(Array.from({ length: 4 }, () => open(bench)))
    const claimed = await Promise.all([...stores, ...stores].map((store) => claimAll(store, 150)))
    const ids = claimed.flat().map(({ id }) => id)
    expect(new Set(ids).size).toBe(6_000)
    expect(ids).toHaveLength(6_000)
  })

  test('a task that this process gives back is the next to be claimed', async () => {
    const store = await open(await backlog(1_000))
    const [first] = (await store.claim(want(null, 1))).leased
    await store.claim(want(null, 100))
    await store.commit([release(first!, { token: first!.lease!.token }, Date.now())])
    expect((await store.claim(want(null, 100))).leased[0]!.id).toBe(first!.id)
  })

  test('a task that another process puts in front is seen soon', async () => {
    const bench = await backlog(1_000)
    const [store, elsewhere] = [await open(bench), await bench.connect()]
    await store.claim(want(null, 10))
    const { id } = await elsewhere.submit('urgent', null, { priority: 100 })
    const from = performance.now()
    for (;;) {
      const { leased } = await store.claim(want(null, 1))
      if (leased[0]?.id === id) break
      expect(leased).toHaveLength(1)
    }
    expect(performance.now() - from).toBeLessThan(RESUME_FOR + PATIENCE)
  })

  test('tasks that a claim locked and did not lease are not passed for ever', async () => {
    const bench = await backlog(300)
    // As a claim leaves them whose connection ends in the middle: rolled back, but the rows still name it.
    await bench.sql('begin', `select 1 from ${bench.schema}.task for update`, 'rollback')
    expect(await claimAll(await open(bench), 50)).toHaveLength(300)
  })

  test('tasks whose row names a transaction that has ended keep their turn while another is open for long', async () => {
    const bench = await backlog(300)
    const other = new Client({ connectionString: url })
    await other.connect()
    onTestFinished(() => other.end())
    await other.query('begin')
    await other.query('select pg_current_xact_id()')
    const some = `select 1 from ${bench.schema}.task order by id limit 20`
    for (let n = 0; n < 40; n++) await bench.sql('begin', `${some} for update`, 'rollback')
    const claimed = await claimAll(await open(bench), 50)
    expect(claimed).toHaveLength(300)
    expect(claimed.map(({ id }) => id)).toEqual(claimed.toSorted(claimOrder).map(({ id }) => id))
  })
})
