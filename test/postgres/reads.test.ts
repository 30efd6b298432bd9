/** How many rows PostgreSQL reads for an answer: what is asked all the time must not depend on what the table has besides. */
import { expect, test } from 'vitest'
import { openPostgres } from '../../src/store/postgres/store.ts'
import type { Store } from '../../src/store/store.ts'
import { type Bench, begin, onPostgres } from './setup.ts'

/** Rows of tasks that were read meanwhile, by whatever way. */
const readBy = async (
  url: string,
  { schema, sql }: Bench,
  ask: (store: Store) => Promise<unknown>,
): Promise<number> => {
  const total = async (): Promise<number> => {
    const [row] = await sql(
      'select pg_stat_force_next_flush()',
      `select (seq_tup_read + idx_tup_fetch)::int as n from pg_stat_user_tables where schemaname = '${schema}' and relname = 'task'`,
    )
    return Number(row!['n'])
  }
  const before = await total()
  const store = await openPostgres(url, { schema })
  await ask(store)
  // Its connections tell what they have read when they end.
  await store.close()
  return (await total()) - before
}

onPostgres('what is read', (url) => {
  test('for a renewal is the task that it names, though thousands of others run', async () => {
    const bench = begin(url)
    const client = await bench.connect()
    await client.submitMany(Array.from({ length: 3_000 }, (_, n) => ({ type: 'other', input: n })))
    await bench.sql(`vacuum analyze ${bench.schema}.task`)
    await bench.sql(
      `update ${bench.schema}.task set status = 'running', lease_token = 'theirs', lease_worker = 'w', lease_claimed_at = 1, lease_expires_at = 9000000000000`,
    )
    const { id } = await client.submit('own', 1)
    const token = (await client.claim(id, { workerId: 'w' })).token!
    const read = await readBy(url, bench, async (store) => {
      const renewed = await store.renew([{ id, token, leaseTtl: 5_000 }], null)
      expect(renewed).toEqual(['held'])
      const lost = await store.renew([{ id, token: 'none', leaseTtl: 5_000 }], null)
      expect(lost).toEqual(['lost'])
    })
    expect(read).toBeLessThan(100)
  })

  test('for a page of what has changed lately is each change once', async () => {
    const bench = begin(url)
    const client = await bench.connect()
    await client.submitMany(Array.from({ length: 20_000 }, (_, n) => ({ type: 'old', input: n })))
    const now = Date.now()
    await bench.sql(
      `update ${bench.schema}.task set status = 'completed', revision = 3, updated_at = ${now}, completed_at = ${now}, id = ('00000000' || substr(id::text, 9))::uuid`,
      // What this has read is told now, not when its connection has ended.
      'select pg_stat_force_next_flush()',
      `vacuum analyze ${bench.schema}.task`,
    )
    for (const order of ['oldest', 'newest'] as const) {
      const read = await readBy(url, bench, async (store) => {
        const page = (await store.list({ updatedAfter: now - 1_000 }, { order, limit: 100, now: null })).tasks
        expect(page).toHaveLength(100)
        const ids = page.map(({ id }) => id)
        expect(ids).toEqual(order === 'oldest' ? ids.toSorted() : ids.toSorted().toReversed())
      })
      expect(read).toBeLessThan(21_000)
    }
  })

  test('for a bounded page is no more than it may scan, in both orders, and the first ready task is behind thousands of others', async () => {
    const bench = begin(url)
    const client = await bench.connect()
    await client.submitMany(Array.from({ length: 10_000 }, (_, n) => ({ type: 'old', input: n })))
    await bench.sql(
      `update ${bench.schema}.task set status = 'completed', revision = 3, completed_at = 1`,
      'select pg_stat_force_next_flush()',
    )
    const { id } = await client.submit('old', 1)
    await bench.sql(`vacuum analyze ${bench.schema}.task`)
    for (const order of ['oldest', 'newest'] as const) {
      const page = { order, limit: 20, maxScanned: 2_000, now: null }
      const read = await readBy(url, bench, async (store) => {
        expect((await store.list({ type: 'nothing' }, page)).stoppedAt).not.toBeNull()
      })
      expect(read, order).toBeLessThan(5_000)
      const ofReady = await readBy(url, bench, async (store) => {
        const { tasks } = await store.list({ type: 'old', views: [{ status: 'pending', available: 'now' }] }, page)
        expect(tasks.map((task) => task.id)).toEqual([id])
      })
      expect(ofReady, order).toBeLessThan(3_000)
    }
  })
})
