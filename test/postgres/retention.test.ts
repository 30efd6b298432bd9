/** Removing what has ended while others work, and working while somebody's transaction keeps the dead rows from being swept. */
import { Client as PgClient } from 'pg'
import { expect, onTestFinished, test } from 'vitest'
import type { Client } from '../../src/index.ts'
import { percentile, report } from '../crash/seed.ts'
import { begin, onPostgres } from './setup.ts'

/** Claims one task after the other and completes it; how long each claim took, and which tasks it was. */
const churn = async (client: Client, tasks: number): Promise<{ times: number[]; ids: string[] }> => {
  const times: number[] = []
  const ids: string[] = []
  for (let i = 0; i < tasks; i++) {
    await client.submit('work', i)
    const begun = performance.now()
    const lease = await client.claimNext({ workerId: 'w', types: ['work'] })
    times.push(performance.now() - begun)
    ids.push(lease!.task.id)
    await lease!.complete(null)
  }
  return { times, ids }
}

onPostgres('retention', (url) => {
  test('prunes in small statements while a worker works, and leaves what has not ended alone', async () => {
    const { schema, connect, sql } = begin(url)
    const client = await connect({ retention: { completed: 0 } })
    const pruner = await connect()
    const items = Array.from({ length: 3_000 }, (_, i) => ({ type: 'work', input: i, idempotencyKey: `k${i}` }))
    await pruner.submitMany(items)
    const first = pruner.worker({ concurrency: 50 }).handle('work', () => null)
    await first.drain()
    const kept = await pruner.submitMany(Array.from({ length: 500 }, () => ({ type: 'work', input: null })))
    // Both remove, and find what the other has left.
    await Promise.all([
      pruner.prune({ olderThan: 0, status: 'completed', limit: 3_000 }),
      client
        .worker({ concurrency: 20 })
        .handle('work', () => null)
        .drain(),
    ])
    expect(kept.every(({ ok }) => ok)).toBe(true)
    await pruner.prune({ olderThan: 0, status: 'completed' })
    expect((await pruner.count()).count).toBe(0)
    // Keys outlive their tasks, so that a late repeat is still a repeat.
    const again = await client.submit('work', 7, { idempotencyKey: 'k7' })
    expect(again.deduplicated).toBe(true)
    expect(await sql(`select count(*)::int as n from ${schema}.key`)).toEqual([{ n: 3_000 }])
  })

  test('the tables are swept eagerly', async () => {
    const { schema, connect, sql } = begin(url)
    await connect()
    const [{ options } = {}] = await sql(
      `select reloptions::text as options from pg_class where oid = '${schema}.task'::regclass`,
    )
    for (const option of ['fillfactor', 'autovacuum_vacuum_scale_factor', 'autovacuum_vacuum_cost_delay=0'])
      expect(options).toContain(option)
  })
})

onPostgres('a session that is idle in a transaction', (url) => {
  test('makes claims slower, but not wrong', async () => {
    const { connect, schema, sql } = begin(url)
    const client = await connect()
    const TASKS = 400
    await churn(client, 50)
    const before = await churn(client, TASKS)

    const idle = new PgClient({ connectionString: url })
    await idle.connect()
    onTestFinished(() => idle.end())
    await idle.query('begin isolation level repeatable read')
    await idle.query(`select count(*) from ${schema}.task`)
    // Nothing that dies from here on can be swept.
    for (let i = 0; i < 4; i++) {
      await client.submitMany(Array.from({ length: 1_000 }, () => ({ type: 'work', input: null })))
      const worker = client.worker({ concurrency: 50 }).handle('work', () => null)
      await worker.drain()
    }
    const during = await churn(client, TASKS)
    await idle.query('commit')
    await sql(`vacuum ${schema}.task`)
    const after = await churn(client, TASKS)

    const all = [before, during, after].flatMap(({ ids }) => ids)
    expect(new Set(all).size).toBe(3 * TASKS)
    expect((await client.count({ status: 'completed' })).count).toBe(3 * TASKS + 50 + 4_000)
    const told = Object.entries({ before, during, after }).map(
      ([when, { times }]) =>
        `${when} p50 ${percentile(times, 0.5).toFixed(2)} ms, p99 ${percentile(times, 0.99).toFixed(2)} ms`,
    )
    report(`idle in transaction: claim latency ${told.join('; ')}`)
    expect(percentile(during.times, 0.5)).toBeLessThan(10 * percentile(before.times, 0.5) + 20)
    expect(percentile(after.times, 0.5)).toBeLessThan(3 * percentile(before.times, 0.5) + 5)
  })
})
