/** Limits hold on PostgreSQL whatever the isolation level, the pool and the faults; a claim that waits for others ends in time. */
import pg from 'pg'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import type { ClaimLimits, GroupTurns } from '../../src/core/flow/group-turns.ts'
import { newSubmission } from '../../src/core/submission.ts'
import { openPostgres, type PostgresOptions } from '../../src/store/postgres/store.ts'
import type { ClaimRequest, Insertion, Store } from '../../src/store/store.ts'
import { type PgBouncer, startPgBouncer } from '../servers/pgbouncer.ts'
import { runSql } from '../servers/schemas.ts'
import { begin, freshDatabase, onPostgres } from './setup.ts'

const UNBOUND: GroupTurns = { perGroup: null, after: null, mostEach: 1_000, without: [], only: null, passed: [] }
const inTurns = (turns: Partial<GroupTurns>): ClaimLimits => ({
  concurrency: null,
  notAfter: null,
  turns: { ...UNBOUND, ...turns },
})

let ops = 0
const want = (limits: ClaimLimits, limit = 10): ClaimRequest => ({
  queue: 'limited',
  types: ['mail', 'sms', 'push'],
  limit,
  // Values that need care where they stand in a statement.
  workerId: `w'\\"`,
  op: `op-${++ops}`,
  leaseTtl: 600_000,
  dueLimit: 0,
  now: null,
  limits,
})

const insertion = (group: string | null, n: number): Insertion => {
  const id = `0192b000-0000-7000-8000-${(++ops).toString(16).padStart(12, '0')}`
  const { types, queue } = want(inTurns({}))
  const options = { queue, ...(group === null ? null : { group }) }
  const facts = { now: 1_000, id, op: `submit-${ops}`, by: 'test' }
  return { task: newSubmission(types![n % 3]!, { text: '1', encoding: 'json' }, options, facts).task }
}

/** Ten of each of five groups, whose names need it as well. */
const GROUPS = ['a', "b'", 'c\\', '{d,"e"}', 'NULL']
const fill = (store: Store) =>
  store.insert(
    Array.from({ length: 50 }, (_, n) => insertion(GROUPS[n % 5]!, n)),
    { now: null },
  )

onPostgres('limits', (url) => {
  const open = async (options: PostgresOptions, address: string | null = url): Promise<Store> => {
    const store = await openPostgres(address, { create: true, ...options })
    onTestFinished(() => store.close())
    return store
  }

  /** Many claims at once, by several stores, half of them of one type alone; what runs then. */
  const claimAtOnce = async (stores: readonly Store[], limits: ClaimLimits): Promise<ReadonlyMap<string, number>> => {
    const claims = Array.from({ length: 12 }, (_, n) => {
      const all = want(limits, 4)
      return stores[n % stores.length]!.claim(n % 2 === 0 ? all : { ...all, types: [all.types![n % 3]!] })
    })
    await Promise.all(claims)
    const page = { order: 'oldest', limit: 100, now: null } as const
    const { tasks } = await stores[0]!.list({ views: [{ status: 'running' }] }, page)
    const running = new Map<string, number>()
    for (const { group } of tasks) running.set(group!, (running.get(group!) ?? 0) + 1)
    return running
  }

  const expectExact = async (stores: readonly Store[]): Promise<void> => {
    await fill(stores[0]!)
    const first = await claimAtOnce(stores, { ...inTurns({}), concurrency: 7 })
    expect([...first.values()].reduce((sum, n) => sum + n, 0)).toBe(7)
    await claimAtOnce(stores, inTurns({ perGroup: 3 }))
    const ofGroups = await claimAtOnce(stores, inTurns({ perGroup: 3 }))
    expect(Object.fromEntries(ofGroups)).toEqual(Object.fromEntries(GROUPS.map((group) => [group, 3])))
    const capped = await claimAtOnce(stores, { concurrency: 20, notAfter: null, turns: null })
    expect([...capped.values()].reduce((sum, n) => sum + n, 0)).toBe(20)
  }

  test.each(['read committed', 'repeatable read', 'serializable'])(
    "hold exactly in a pool of the caller's whose level is %s",
    async (level) => {
      const { schema, connect } = begin(url)
      await (await connect()).close()
      const pools = [0, 1].map(() => {
        const options = `-c default_transaction_isolation=${level.replace(' ', '\\ ')}`
        const pool = new pg.Pool({ connectionString: url, max: 4, options })
        onTestFinished(() => pool.end())
        return pool
      })
      await expectExact(await Promise.all(pools.map((pool) => open({ schema, pool, listen: false }, null))))
    },
  )

  /** Each update takes a while, so that claims meet. */
  const slowly = async ({ schema, sql }: ReturnType<typeof begin>, seconds: number): Promise<void> => {
    await sql(
      `create function ${schema}.wait() returns trigger language plpgsql as $$ begin perform pg_sleep(${seconds}); return new; end $$`,
      `create trigger wait before update on ${schema}.task for each statement execute function ${schema}.wait()`,
    )
  }

  test('without the lock they would not: claims that meet count the same places', async () => {
    const bench = begin(url)
    const stores = await Promise.all([open({ schema: bench.schema }), open({ schema: bench.schema })])
    await fill(stores[0]!)
    await slowly(bench, 0.3)
    const [row] = await bench.sql(`select pg_get_functiondef('${bench.schema}.claim_in_turns'::regproc) as text`)
    const planted = String(row!['text']).replace(/perform pg_advisory_xact_lock\([^;]*;/, 'perform 1;')
    expect(planted).not.toBe(row!['text'])
    await bench.sql(planted)
    const running = await claimAtOnce(stores, inTurns({ perGroup: 1 }))
    expect(Math.max(...running.values())).toBeGreaterThan(1)
  })

  test('a claim that waits too long for another of its queue fails, and has leased nothing', async () => {
    const bench = begin(url)
    const { schema, sql } = bench
    const store = await open({ schema, queryTimeout: '1s' })
    await fill(store)
    const holder = new pg.Client({ connectionString: url })
    await holder.connect()
    onTestFinished(() => holder.end())
    const { queue } = want(inTurns({}))
    await holder.query('begin')
    await holder.query('select pg_advisory_xact_lock(hashtextextended($1, 0))', [`holdfast "${schema}" ${queue}`])
    await expect(store.claim(want(inTurns({ perGroup: 1 })))).rejects.toMatchObject({ code: 'STORE_BUSY' })
    await expect(store.claim(want({ ...inTurns({}), turns: null, concurrency: 2 }))).rejects.toMatchObject({
      code: 'STORE_BUSY',
    })
    // Claims of other queues, and without limits, wait for nobody.
    const other = { ...want(inTurns({ perGroup: 1 })), queue: 'other' }
    expect((await store.claim(other)).leased).toEqual([])
    await holder.query('rollback')
    expect(await sql(`select 1 from ${schema}.task where status = 'running'`)).toEqual([])
    expect((await store.claim(want(inTurns({ perGroup: 1 })))).leased).toHaveLength(5)
  })

  test('a connection that is ended between the lock and the commit leaves neither', async () => {
    const bench = begin(url)
    const { schema, sql } = bench
    const store = await open({ schema, max: 1 })
    await fill(store)
    await slowly(bench, 30)
    const claim = store.claim(want(inTurns({ perGroup: 1 }))).catch((error: unknown) => error)
    const holders = `select a.pid from pg_locks l join pg_stat_activity a using (pid) where l.locktype = 'advisory' and l.granted
      and a.wait_event = 'PgSleep' and a.query like '%"${schema}".claim_in_turns%'`
    await expect.poll(() => sql(holders), { timeout: 30_000 }).toHaveLength(1)
    await sql(`select pg_terminate_backend(pid) from (${holders}) as h`)
    expect(await claim).toMatchObject({ code: 'STORE_UNAVAILABLE' })
    await expect.poll(() => sql(holders), { timeout: 30_000 }).toEqual([])
    await sql(`drop trigger wait on ${schema}.task`)
    expect(await sql(`select 1 from ${schema}.task where status = 'running'`)).toEqual([])
    expect((await store.claim(want(inTurns({ perGroup: 1 })))).leased).toHaveLength(5)
  })

  test('a key that two would replace at once passes to one of them', async () => {
    const { schema } = begin(url)
    const [store, other] = [await open({ schema }), await open({ schema })]
    const keyed = (replaces?: string): Insertion => {
      const { task } = insertion(null, 0)
      const key = { key: 'k', taskId: task.id, hash: 'h', expiresAt: 5_000, exact: false }
      return { task: { ...task, idempotencyKey: 'k' }, key, ...(replaces === undefined ? null : { replaces }) }
    }
    const first = keyed()
    await store.insert([first], { now: 1_000 })
    const client = new pg.Client({ connectionString: url })
    await client.connect()
    onTestFinished(() => client.end())
    await client.query('begin')
    await client.query(`select 1 from ${schema}.key for update`)
    // It waits for the key, which has another task when it gets it. The key's own time is over: it lives with its task.
    const late = other.insert([keyed(first.task.id)], { now: 9_000 })
    const [row] = (await client.query<{ pid: number }>('select pg_backend_pid() as pid')).rows
    const waiting = `select 1 from pg_stat_activity where ${row!.pid} = any(pg_blocking_pids(pid))`
    await expect.poll(() => runSql(url, waiting), { timeout: 30_000 }).not.toEqual([])
    const second = keyed(first.task.id)
    expect(await store.insert([second], { tx: client, now: 1_000 })).toEqual([{ outcome: 'created' }])
    await client.query('commit')
    expect(await late).toMatchObject([{ outcome: 'existing', task: { id: second.task.id } }])
  })

  let bouncer: PgBouncer | { readonly missing: string }
  beforeAll(async () => {
    bouncer = await startPgBouncer(url).catch((error: Error) => ({ missing: error.message }))
  })
  afterAll(async () => {
    if ('url' in bouncer) await bouncer.remove()
  })

  test.for(['read committed', 'repeatable read'])(
    'hold exactly through PgBouncer in a database whose level is %s, and leave nothing on its connections',
    async (level, { skip }) => {
      if (!('url' in bouncer)) return skip(`PgBouncer could not be started: ${bouncer.missing}`)
      const database = new URL(await freshDatabase(url)).pathname
      await runSql(url, `alter database ${database.slice(1)} set default_transaction_isolation = '${level}'`)
      const through = new URL(bouncer.url)
      through.pathname = database
      const shared = { prepare: false, listen: false }
      const stores = [await open(shared, through.href), await open(shared, through.href)]
      await expectExact(stores)
      const left = await runSql(through.href, `select current_setting('lock_timeout') as wait`)
      expect(left).toEqual([{ wait: '0' }])
      // PgBouncer keeps its connections, and a database with connections cannot be dropped but by force.
      await Promise.all(stores.map((store) => store.close()))
    },
  )
})
