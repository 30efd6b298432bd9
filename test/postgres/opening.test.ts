/** Making, finding, upgrading and refusing a store, and what a connection is like, whatever its defaults. */
import { Pool } from 'pg'
import { expect, onTestFinished, test } from 'vitest'
import { connect, type HoldfastError, silentLogger } from '../../src/index.ts'
import { openPostgres } from '../../src/store/postgres/store.ts'
import { runSql } from '../servers/schemas.ts'
import { begin, freshDatabase, onPostgres } from './setup.ts'

onPostgres('opening a store', (url) => {
  test('ten clients that open an empty database at once make one schema with one identity', async () => {
    const database = await freshDatabase(url)
    const clients = await Promise.all(
      Array.from({ length: 10 }, () => connect(database, { create: true, logger: silentLogger })),
    )
    await Promise.all(clients.map((client) => client.submit('work', null)))
    expect((await clients[0]!.count()).count).toBe(10)
    await Promise.all(clients.map((client) => client.close()))
    expect(await runSql(database, `select count(*)::int as n from holdfast.meta where name = 'identity'`)).toEqual([
      { n: 1 },
    ])
  })

  test('it is said once that a store was made', async () => {
    const { schema, sql } = begin(url)
    let made = 0
    const open = () => openPostgres(url, { schema, create: true, onCreated: () => made++ })
    const stores = await Promise.all([open(), open(), open()])
    for (const store of stores) await store.close()
    expect(made).toBe(1)
    await sql('select 1')
  })

  test('the schema of an address that is written for prisma is refused, and so is one with tables of the same names', async () => {
    const database = await freshDatabase(url)
    const prismas = openPostgres(`${database}?schema=public`, { create: true })
    await expect(prismas).rejects.toMatchObject({
      code: 'INVALID_OPTION',
      message: expect.stringMatching(/prisma.*schema: 'holdfast'/),
    })
    await runSql(database, 'create table public.task (id int)')
    const full = openPostgres(database, { schema: 'public', create: true })
    await expect(full).rejects.toMatchObject({
      code: 'INVALID_OPTION',
      message: expect.stringMatching(/"task" already exists/),
    })
    const apart = await openPostgres(`${database}?schema=public`, { schema: 'holdfast', create: true })
    await apart.close()
  })

  test('without create there must be a store', async () => {
    const { schema } = begin(url)
    await expect(openPostgres(url, { schema })).rejects.toMatchObject({
      code: 'STORE_NOT_FOUND',
      message: expect.stringMatching(/^postgres:.*127\.0\.0\.1.*: there is no Holdfast store .*holdfast init/),
    })
  })

  test('a database that is not there, a wrong password or a closed port is named without secrets', async () => {
    const nowhere = new URL(url)
    nowhere.pathname = '/nowhere'
    await expect(openPostgres(nowhere.href)).rejects.toMatchObject({ code: 'STORE_NOT_FOUND' })
    await expect(openPostgres('postgres://ann:secret@127.0.0.1:1/x')).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
      message: expect.not.stringContaining('secret'),
    })
  })

  test.each<[what: string, change: (address: URL) => void, code: string, reason: string, message: RegExp]>([
    [
      'a closed port',
      (at) => Object.assign(at, { port: '1' }),
      'STORE_UNAVAILABLE',
      'refused',
      /127\.0\.0\.1:1\/.*ECONNREFUSED/,
    ],
    [
      'an unknown host',
      (at) => Object.assign(at, { hostname: 'no-such-host.invalid' }),
      'STORE_UNAVAILABLE',
      'unknown-host',
      /no-such-host\.invalid/,
    ],
    [
      'an unknown role',
      (at) => Object.assign(at, { username: 'nobody_here' }),
      'STORE_UNAVAILABLE',
      'not-allowed',
      /role "nobody_here" does not exist/,
    ],
    [
      'an unknown database',
      (at) => Object.assign(at, { pathname: '/nowhere' }),
      'STORE_NOT_FOUND',
      'no-database',
      /database "nowhere" does not exist/,
    ],
    [
      'TLS that the server does not have',
      (at) => at.searchParams.set('sslmode', 'require'),
      'STORE_UNAVAILABLE',
      'tls',
      /SSL/,
    ],
  ])('%s has its own reason, names the place, and has advice that fits', async (_, change, code, reason, message) => {
    const address = new URL(url)
    change(address)
    const error = await openPostgres(address.href).then(
      () => null,
      (thrown: HoldfastError) => thrown,
    )
    expect(error).toMatchObject({ code, message: expect.stringMatching(message), details: { reason } })
    expect(error!.fix).not.toMatch(/repeat|report/i)
    expect(error!.details['sqlState'] ?? '00000').toMatch(/^[0-9A-Z]{5}$/)
  })

  test('a newer schema is refused, and left alone', async () => {
    const { schema, sql, connect: open } = begin(url)
    await (await open()).close()
    await sql(`update ${schema}.meta set value = '99' where name = 'schema_version'`)
    await expect(openPostgres(url, { schema, create: true })).rejects.toMatchObject({ code: 'SCHEMA_NEWER' })
    expect(await sql(`select value from ${schema}.meta where name = 'schema_version'`)).toEqual([{ value: '99' }])
  })

  test('a schema name that is not a plain one never reaches a statement', async () => {
    for (const schema of ['', 'a"; drop schema public; --', 'Größe', 'a.b', '1a', 'A', 'a'.repeat(64), 'a b', "a'b"])
      await expect(openPostgres(url, { schema, create: true })).rejects.toMatchObject({ code: 'INVALID_OPTION' })
  })

  test('a role that may use a schema but not make one can have its tables made in it', async () => {
    const { schema, sql } = begin(url)
    const role = `${schema}_app`
    await sql(`create role ${role} login`, `create schema ${schema} authorization ${role}`)
    const as = new URL(url)
    as.username = role
    const store = await openPostgres(as.href, { schema, create: true })
    await store.close()
    await sql(`drop schema ${schema} cascade`, `drop role ${role}`)
  })
})

onPostgres('connections of our own', (url) => {
  /** A database whose defaults are against us. */
  const hostile = async (): Promise<string> => {
    const database = await freshDatabase(url)
    const name = new URL(database).pathname.slice(1)
    await runSql(
      database,
      `create schema evil`,
      `create function evil.coalesce_trap(bigint) returns bigint language sql as 'select 0::bigint'`,
      `create function evil.starts_with(text, text) returns boolean language sql as 'select false'`,
      `create table public.task (trap int)`,
      `alter database ${name} set default_transaction_isolation = 'serializable'`,
      `alter database ${name} set synchronous_commit = off`,
      `alter database ${name} set search_path = evil, public, pg_catalog`,
    )
    return database
  }

  test('are durable, read committed and mean what they say, whatever the database has as defaults', async () => {
    const database = await hostile()
    const [pool] = [new Pool({ connectionString: database })]
    onTestFinished(() => pool.end())
    await using client = await connect(database, { create: true, logger: silentLogger })
    const worker = client.worker({ concurrency: 20 }).handle('work', () => null)
    const results = await client.submitMany(Array.from({ length: 500 }, () => ({ type: 'work', input: null })))
    expect(results.filter(({ ok }) => !ok)).toEqual([])
    await worker.drain()
    expect((await client.count({ status: 'completed' })).count).toBe(500)
    await client.queue('default').pause()
    expect(await client.queue('default').isPaused()).toBe(true)
  })

  test("a pool of the caller's whose commits are not durable is refused", async () => {
    const pool = new Pool({ connectionString: await hostile() })
    onTestFinished(() => pool.end())
    await expect(openPostgres(null, { pool, create: true })).rejects.toMatchObject({
      code: 'INVALID_OPTION',
      message: expect.stringContaining('synchronous_commit'),
    })
  })

  test('a server that does not sync is warned about', async () => {
    const [{ fsync } = {}] = await runSql(url, `select current_setting('fsync') as fsync`)
    const warnings: string[] = []
    const { schema } = begin(url)
    const store = await openPostgres(url, { schema, create: true, onWarning: (message) => warnings.push(message) })
    await store.close()
    expect(warnings.length).toBe(fsync === 'off' ? 1 : 0)
  })
})

onPostgres("a pool of the caller's", (url) => {
  const withPool = (max: number): Pool => {
    const pool = new Pool({ connectionString: url, max })
    onTestFinished(() => (pool.ended ? undefined : pool.end()))
    return pool
  }

  test('is used, and is not closed with the client', async () => {
    const pool = withPool(2)
    const { connect: open } = begin(url)
    const client = await open({ through: 'postgres:', postgres: { pool } })
    const { id } = await client.submit('work', 1)
    await client
      .worker()
      .handle('work', (input) => input)
      .drain()
    expect(await client.wait(id)).toBe(1)
    await client.close()
    expect((await pool.query('select 1 as one')).rows).toEqual([{ one: 1 }])
    expect(pool.listenerCount('error')).toBe(0)
  })

  test('of one connection does not lock itself out', async () => {
    const { connect: open } = begin(url)
    const client = await open({ postgres: { pool: withPool(1) } })
    const keyed = Array.from({ length: 50 }, (_, i) => client.submit('work', null, { idempotencyKey: `k${i % 10}` }))
    const tasks = await Promise.all([...keyed, ...Array.from({ length: 10 }, () => client.submit('work', null))])
    expect(new Set(tasks.map(({ id }) => id)).size).toBe(20)
    const done = client.worker({ concurrency: 5 }).handle('work', () => null)
    await done.drain()
    expect((await client.count({ status: 'completed' })).count).toBe(20)
  })

  test('whose connections are all taken ends in a typed error, and gives back what comes too late', async () => {
    const pool = withPool(1)
    const { connect: open } = begin(url)
    const client = await open({ postgres: { pool, queryTimeout: '200ms', listen: false } })
    const taken = await pool.connect()
    await expect(client.submit('work', null)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    taken.release()
    await client.submit('work', null)
    // What else was under way gives its connection back a moment later.
    await expect.poll(() => pool.idleCount).toBe(1)
  })

  test('that is ended under us is a closed store', async () => {
    const pool = withPool(1)
    const { connect: open } = begin(url)
    const client = await open({ postgres: { pool, listen: false } })
    await pool.end()
    await expect(client.count()).rejects.toMatchObject({ code: 'STORE_CLOSED' })
  })
})

onPostgres('a store that is replaced under a living process', (url) => {
  test('by another one: the worker stops, and a submit does not write into the new one', async () => {
    const { schema, sql, connect: open } = begin(url)
    const client = await open()
    await client.submit('work', null)
    const run = client
      .worker()
      .handle('work', () => null)
      .run({ signals: false })
    run.catch(() => {})
    await sql(`drop schema ${schema} cascade`)
    await (await open()).close()
    await expect(run).rejects.toMatchObject({ code: 'STORE_IDENTITY_CHANGED' })
    await expect(client.submit('work', null)).rejects.toMatchObject({ code: 'STORE_IDENTITY_CHANGED' })
    expect(await sql(`select count(*)::int as n from ${schema}.task`)).toEqual([{ n: 0 }])
  })

  test('by a newer release: the worker stops, and every call hears of it, not one in five seconds', async () => {
    const { schema, sql, connect: open } = begin(url)
    const client = await open()
    const run = client
      .worker({ pollInterval: '100ms' })
      .handle('work', () => null)
      .run({ signals: false })
    run.catch(() => {})
    await sql(`update ${schema}.meta set value = '99' where name = 'schema_version'`)
    await expect(run).rejects.toMatchObject({ code: 'SCHEMA_NEWER' })
    for (let n = 0; n < 3; n++) await expect(client.submit('work', n)).rejects.toMatchObject({ code: 'SCHEMA_NEWER' })
  })

  test('by none at all is the same', async () => {
    const { schema, sql, connect: open } = begin(url)
    const client = await open()
    await sql(`drop schema ${schema} cascade`)
    await expect(client.submit('work', null)).rejects.toMatchObject({ code: 'STORE_IDENTITY_CHANGED' })
  })
})

onPostgres('without named statements and without listening, as behind PgBouncer in transaction mode', (url) => {
  test('everything works, and nothing is left behind on a connection', async () => {
    const pool = new Pool({ connectionString: url, max: 1 })
    onTestFinished(() => pool.end())
    const { connect: open } = begin(url)
    const client = await open({ postgres: { pool, prepare: false, listen: false } })
    await client.submit('work', 1, { idempotencyKey: 'k' })
    const again = await client.submit('work', 1, { idempotencyKey: 'k' })
    expect(again.deduplicated).toBe(true)
    await client
      .worker()
      .handle('work', () => null)
      .drain()
    const { rows } = await pool.query(`select (select count(*)::int from pg_prepared_statements) as statements,
      current_setting('search_path') as path, current_setting('jit') as jit, current_setting('statement_timeout') as timeout,
      (select count(*)::int from pg_listening_channels()) as channels`)
    const [before] = await begin(url).sql(
      `select current_setting('search_path') as path, current_setting('jit') as jit, current_setting('statement_timeout') as timeout`,
    )
    expect(rows).toEqual([{ statements: 0, channels: 0, ...before }])
  })
})
