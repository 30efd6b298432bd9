/** Following changes on PostgreSQL, where a transaction may show at its end what was stamped long before. */
import { Client as PgClient } from 'pg'
import { expect, onTestFinished, test } from 'vitest'
import { openPostgres } from '../../src/store/postgres/store.ts'
import { begin, onPostgres } from './setup.ts'

const connected = async (url: string): Promise<PgClient> => {
  const tx = new PgClient({ connectionString: url })
  await tx.connect()
  onTestFinished(() => tx.end())
  return tx
}

onPostgres('following changes', (url) => {
  test('the past is settled up to the oldest transaction that has written, and no further', async () => {
    const bench = begin(url)
    await bench.connect()
    const store = await openPostgres(url, { schema: bench.schema })
    onTestFinished(() => store.close())
    await store.visibleUntil!()
    const tx = await connected(url)
    await tx.query('begin')
    await tx.query(`insert into ${bench.schema}.document values ('open', '', 1)`)
    const { at } = await store.now()
    await expect.poll(async () => (await store.now()).at).toBeGreaterThan(at)
    for (let asked = 0; asked < 3; asked++) expect(await store.visibleUntil!()).toBeLessThanOrEqual(at)
    await tx.query('commit')
    // Also tests beside this one have transactions.
    await expect.poll(() => store.visibleUntil!(), { timeout: 30_000 }).toBeGreaterThan(at)
  })

  test('tells what a transaction shows when it commits, and every other move once', async () => {
    const bench = begin(url)
    const [client, other] = [await bench.connect(), await bench.connect()]
    const told: string[] = []
    const stop = new AbortController()
    const changes = client.changes({ signal: stop.signal })
    const following = (async () => {
      for await (const { entry, task } of changes) told.push(`${task.type}:${entry.move}`)
    })()
    const tx = await connected(url)
    await tx.query('begin')
    await other.submit('late', 1, { tx })
    await other.submit('soon', 1)
    await other
      .worker()
      .handle('soon', () => 1)
      .drain()
    await expect.poll(() => told).toEqual(['soon:submit', 'soon:claim', 'soon:complete'])
    await tx.query('commit')
    await expect.poll(() => told.slice(3), { timeout: 10_000 }).toEqual(['late:submit'])
    const failed = await other.submit('broken', 1, { maxRetries: 0 })
    await (await other.claim(failed.id, { workerId: 'w' })).fail(new Error('boom'))
    await other.archive(failed.id)
    await other.unarchive(failed.id)
    await expect
      .poll(() => told.slice(4), { timeout: 10_000 })
      .toEqual(['broken:submit', 'broken:claim', 'broken:fail', 'broken:archive', 'broken:unarchive'])
    stop.abort()
    await following
  })

  test('what has changed lately is found by indexes, however many tasks there are', async () => {
    const bench = begin(url)
    const client = await bench.connect()
    await client.submitMany(Array.from({ length: 20_000 }, (_, n) => ({ type: 'old', input: n })))
    await bench.sql(
      `update ${bench.schema}.task set status = 'completed', revision = 3, created_at = 1, updated_at = 1, completed_at = 1, id = ('00000000' || substr(id::text, 9))::uuid`,
      `vacuum analyze ${bench.schema}.task`,
    )
    const seen = async (): Promise<number> =>
      Number(
        (
          await bench.sql(
            `select pg_stat_force_next_flush()`,
            `select seq_tup_read::int as n from pg_stat_user_tables where schemaname = '${bench.schema}' and relname = 'task'`,
          )
        )[0]!['n'],
      )
    const before = await seen()
    const changes = client.changes()
    const next = changes.next()
    const { id } = await client.submit('new', 1)
    expect((await next).value?.task.id).toBe(id)
    await changes.return()
    await client.close()
    expect((await seen()) - before).toBeLessThan(20_000)
  })
})
