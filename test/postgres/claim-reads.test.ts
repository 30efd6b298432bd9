/** What a claim reads depends on what it takes and on how many types it asks for, never on how much waits. */
import pg from 'pg'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { Claimer } from '../../src/store/postgres/claim/claimer.ts'
import { type Bench, begin, onPostgres } from './setup.ts'
import { type Reads, watched } from './watched.ts'

const WAITING = 100_000
const AMOUNT = 100
const PRIORITIES = 3

const typesOf = (count: number): string[] => Array.from({ length: count }, (_, n) => `type_${n}`)

/** Tasks of `count` types in a queue of that name, in turns, of three priorities, a tenth of them with an expiry. */
const fill = ({ schema, sql }: Bench, queue: string, count: number, waiting = WAITING): Promise<unknown> =>
  sql(`insert into ${schema}.task (id, available_at, created_at, updated_at, priority, queue, type, input, history, expires_at)
    select gen_random_uuid(), n / 100, 0, 0, n / ${count} % ${PRIORITIES}, '${queue}', 'type_' || n % ${count}, '{}', '{"n":1,"at":0,"move":"submit","to":"pending","by":"t","op":"o"}',
      case when n % 10 = 9 then 9000000000000 end
    from generate_series(0, ${waiting - 1}) n`)

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1]!

/** Of the claims after the first, which also plans and loads the catalogue. */
const claims = async (
  url: string,
  { schema }: Bench,
  want: { queue: string; types: readonly string[] | null; amount?: number; times?: number },
): Promise<Reads> => {
  const { executor, reads } = await watched(url, schema)
  const claimer = new Claimer(executor, schema)
  const { queue, types, amount = AMOUNT, times = 7 } = want
  for (let n = 0; n < times; n++) {
    const { leased } = await claimer.look({
      queue,
      types,
      limit: amount,
      workerId: 'w',
      op: `${queue}-${n}`,
      leaseTtl: 60_000,
      dueLimit: 0,
      now: null,
    })
    expect(leased).toHaveLength(amount)
  }
  return { rows: median(reads.map(({ rows }) => rows)), blocks: median(reads.map(({ blocks }) => blocks)) }
}

/** Of each task eight entries and 30 blocks, of each level ten entries and 40 blocks. The backlog would be 30,000 entries and more. */
const mostFor = (types: number, amount = AMOUNT): Reads => {
  const levels = types * PRIORITIES * 2
  return { rows: amount * 8 + levels * 10, blocks: amount * 30 + levels * 40 }
}

const expectFew = (reads: Reads, types: number): void => {
  expect(reads.rows).toBeLessThan(mostFor(types).rows)
  expect(reads.blocks).toBeLessThan(mostFor(types).blocks)
}

onPostgres('a claim', (url) => {
  const filled = async (prepare: (bench: Bench) => Promise<unknown> = async () => {}): Promise<Bench> => {
    const bench = begin(url)
    await (await bench.connect()).close()
    await bench.sql(`alter table ${bench.schema}.task set (autovacuum_enabled = false)`)
    await prepare(bench)
    for (const types of [1, 2, 10, 50]) await fill(bench, `q${types}`, types)
    return bench
  }

  test('of 1, 2, 10 or 50 types reads what it takes, with 100,000 waiting, without statistics and with fresh ones', async () => {
    const bench = await filled()
    for (const types of [1, 2, 10, 50])
      expectFew(await claims(url, bench, { queue: `q${types}`, types: typesOf(types) }), types)
    await bench.sql(`analyze ${bench.schema}.task`)
    for (const types of [1, 2, 10, 50])
      expectFew(await claims(url, bench, { queue: `q${types}`, types: typesOf(types) }), types)
    // Without a list of types; and of types of which most have nothing.
    expectFew(await claims(url, bench, { queue: 'q10', types: null }), 10)
    const many = [...typesOf(2), ...Array.from({ length: 48 }, (_, n) => `empty_${n}`)]
    expectFew(await claims(url, bench, { queue: 'q2', types: many }), 50)
    // One task, as an idle worker takes it.
    const one = await claims(url, bench, { queue: 'q10', types: typesOf(10), amount: 1 })
    expect(one.blocks).toBeLessThan(mostFor(10, 1).blocks)
  })

  test('reads no more when the statistics are those of a table that was empty, or drained', async () => {
    const bench = await filled(async ({ schema, sql }) => {
      await fill({ schema, sql } as Bench, 'done', 5, 5_000)
      await sql(
        `update ${schema}.task set status = 'completed', completed_at = 1, updated_at = 1`,
        `analyze ${schema}.task`,
      )
    })
    for (const types of [1, 2, 10, 50])
      expectFew(await claims(url, bench, { queue: `q${types}`, types: typesOf(types) }), types)
  })

  test('reads no more while a backlog is drained, after 100,000 claims without a vacuum', async () => {
    const bench = begin(url)
    await (await bench.connect()).close()
    await bench.sql(`alter table ${bench.schema}.task set (autovacuum_enabled = false)`)
    await fill(bench, 'long', 10, WAITING + 20_000)
    await claims(url, bench, { queue: 'long', types: typesOf(10), amount: 1_000, times: 100 })
    // What was claimed is no longer pending, but its index entries are still there.
    expectFew(await claims(url, bench, { queue: 'long', types: typesOf(10), times: 40 }), 10)
  })

  test('of any type reads a bounded number of types, whatever the number that waits, and all come to their turn', async () => {
    const bench = begin(url)
    await (await bench.connect()).close()
    await bench.sql(`insert into ${bench.schema}.task (id, available_at, created_at, updated_at, queue, type, input, history)
      select gen_random_uuid(), 5, 0, 0, 'any', 'type_' || n, '{}', '{"n":1,"at":0,"move":"submit","to":"pending","by":"t","op":"o"}' from generate_series(1, 3000) n`)
    const { executor, reads } = await watched(url, bench.schema)
    const claimer = new Claimer(executor, bench.schema)
    const seen: string[] = []
    for (let n = 0; n < 8; n++) {
      const want = { queue: 'any', types: null, limit: 1, workerId: 'w', op: `o${n}`, leaseTtl: 60_000, dueLimit: 0 }
      const { leased } = await claimer.look({ ...want, now: null })
      seen.push(...leased.map(({ type }) => type))
    }
    expect(seen).toHaveLength(8)
    for (const { rows } of reads) expect(rows).toBeLessThan(8_000)
    // One of each window of 500, and then from the front again.
    const inOrder = seen.slice(0, 6)
    expect(inOrder.toSorted()).toEqual(inOrder)
    expect(seen[6]! < seen[5]!).toBe(true)
    // Of what is not due, the next instant is known when all have had their turn.
    await bench.sql(`update ${bench.schema}.task set available_at = 5000000000000 where status = 'pending'`)
    const nexts: (number | null)[] = []
    for (let n = 0; n < 12; n++) {
      const want = { queue: 'any', types: null, limit: 1, workerId: 'w', op: `p${n}`, leaseTtl: 60_000, dueLimit: 0 }
      nexts.push((await claimer.look({ ...want, now: null })).next)
    }
    expect(nexts.filter((next) => next! > Date.now() + 30_000).length).toBeGreaterThan(0)
  })

  test('of a priority below 2,001 priorities of future tasks passes these seldom', async () => {
    const bench = begin(url)
    const client = await bench.connect()
    await bench.sql(`insert into ${bench.schema}.task (id, available_at, created_at, updated_at, priority, queue, type, input, history)
      select gen_random_uuid(), 5000000000000 + n, 0, 0, n % 2001 - 1000, 'busy', 'type_0', '{}', '{"n":1,"at":0,"move":"submit","to":"pending","by":"t","op":"o"}' from generate_series(1, 10005) n`)
    const { executor, reads } = await watched(url, bench.schema)
    const claimer = new Claimer(executor, bench.schema)
    // Submitted first: between two looks no time may pass that a busy machine makes long.
    const inputs = Array.from({ length: 30 }, (_, n) => n)
    await client.submitMany(inputs.map((input) => ({ type: 'type_0', input, queue: 'busy', priority: -1000 })))
    const blocks: number[] = []
    for (const n of inputs) {
      const before = reads.length
      const want = {
        queue: 'busy',
        types: typesOf(1),
        limit: 1,
        workerId: 'w',
        op: `o${n}`,
        leaseTtl: 60_000,
        dueLimit: 0,
      }
      const { leased } = await claimer.look({ ...want, now: null })
      expect(leased).toHaveLength(1)
      blocks.push(reads.slice(before).reduce((sum, one) => sum + one.blocks, 0))
    }
    expect(Math.max(...blocks), 'they are in the way').toBeGreaterThan(2_001)
    expect(blocks.filter((count) => count < 300).length).toBeGreaterThan(10)
  })

  describe('beside a transaction that stays open', () => {
    /** 60,000 tasks that were claimed and completed since it began: their index entries cannot be removed. */
    const beside = async () => {
      const bench = begin(url)
      const client = await bench.connect()
      const idle = new pg.Client({ connectionString: url, application_name: 'forgotten' })
      await idle.connect()
      onTestFinished(() => idle.end())
      await idle.query('begin isolation level repeatable read')
      await idle.query('select 1 from pg_class limit 1')
      await fill(bench, 'busy', 1, 60_000)
      await bench.sql(
        `update ${bench.schema}.task set status = 'running', lease_expires_at = available_at + 1, lease_token = id::text`,
        `update ${bench.schema}.task set status = 'completed', lease_expires_at = null, lease_token = null`,
      )
      const { executor, reads } = await watched(url, bench.schema)
      const claimer = new Claimer(executor, bench.schema)
      let n = 0
      /** What one look leases, and what its statements read together. */
      const look = async (types: readonly string[] = typesOf(1)) => {
        const before = reads.length
        const want = { queue: 'busy', types, limit: 10, workerId: 'w', op: `o${n++}`, leaseTtl: 60_000, dueLimit: 10 }
        const { leased, due } = await claimer.look({ ...want, now: null })
        const blocks = reads.slice(before).reduce((sum, one) => sum + one.blocks, 0)
        return { leased: leased.length, due: due.length, blocks }
      }
      return { ...bench, client, claimer, look }
    }

    test('looks from the front seldom, and reads little in between', async () => {
      const { client, look } = await beside()
      await client.submit('type_0', 1, { queue: 'busy' })
      const front = await look()
      expect(front.leased).toBe(1)
      expect(front.blocks, 'the dead entries are in the way').toBeGreaterThan(5_000)
      const between: number[] = []
      for (let i = 0; i < 40; i++) {
        if (i % 2 === 0) await client.submit('type_0', i, { queue: 'busy' })
        const { leased, blocks } = await look()
        expect(leased).toBe(i % 2 === 0 ? 1 : 0)
        between.push(blocks)
      }
      // How many are from the front depends on how busy this machine is.
      expect(between.filter((blocks) => blocks < 300).length).toBeGreaterThan(10)
    })

    test('misses nothing: other types and priorities, earlier instants, lapsed leases come with a look from the front', async () => {
      const { schema, sql, client, look } = await beside()
      await client.submit('type_0', 1, { queue: 'busy' })
      const types = ['type_0', 'other']
      await look(types)
      const expected = await Promise.all([
        client.submit('other', 1, { queue: 'busy' }),
        client.submit('type_0', 1, { queue: 'busy', priority: 500, ttl: '1h' }),
        client.submit('type_0', 1, { queue: 'busy' }),
      ])
      await sql(`update ${schema}.task set available_at = 5 where id = '${expected[2].id}'`)
      let [leased, due] = [0, 0]
      await vi.waitFor(
        async () => {
          const looked = await look(types)
          leased += looked.leased
          expect(leased).toBe(expected.length)
        },
        { timeout: 30_000, interval: 50 },
      )
      await sql(`update ${schema}.task set lease_expires_at = 7 where status = 'running'`)
      await vi.waitFor(
        async () => {
          due = (await look(types)).due
          expect(due).toBe(expected.length + 1)
        },
        { timeout: 30_000, interval: 50 },
      )
    })
  })
})
