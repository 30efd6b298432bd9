/** submit(…, { tx }): a task that is there if and only if the caller's own transaction commits, whoever made that. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { Client as PgClient, Pool } from 'pg'
import { expect, onTestFinished, test } from 'vitest'
import type { Client, Code } from '../../src/index.ts'
import { begin, freshDatabase, onPostgres } from './setup.ts'

const connectPg = async (url: string): Promise<PgClient> => {
  const db = new PgClient({ connectionString: url })
  await db.connect()
  onTestFinished(() => db.end())
  return db
}

const refused = (promise: Promise<unknown>, code: Code): Promise<void> =>
  expect(promise).rejects.toMatchObject({ code })

const total = async (client: Client): Promise<number> => (await client.count()).count

onPostgres('a submit in a transaction of a pg client', (url) => {
  const start = async () => {
    const bench = begin(url)
    return { ...bench, client: await bench.connect(), db: await connectPg(url) }
  }

  test('is there once that commits, and not before', async () => {
    const { client, db } = await start()
    await db.query('begin')
    const task = await client.submit('brew', { cups: 2 }, { tx: db })
    await refused(client.get(task.id), 'TASK_NOT_FOUND')
    await db.query('commit')
    expect((await client.get(task.id)).input).toEqual({ cups: 2 })
  })

  test('vanishes when that is rolled back, and frees its key', async () => {
    const { client, db } = await start()
    await db.query('begin')
    const { id } = await client.submit('brew', 1, { tx: db, idempotencyKey: 'order-1' })
    await db.query('rollback')
    await refused(client.get(id), 'TASK_NOT_FOUND')
    const kept = await client.submit('brew', 2, { idempotencyKey: 'order-1' })
    expect(kept.deduplicated).toBe(false)
  })

  test('wakes the workers of others when that commits, and not before', async () => {
    const { client, db, connect } = await start()
    const other = await connect()
    const first = await client.submit('brew', 'first')
    other
      .worker({ pollInterval: '1h' })
      .handle('brew', () => null)
      .start()
    await client.waitForEnd(first)
    await db.query('begin')
    const { id } = await client.submit('brew', 'second', { tx: db })
    const committed = performance.now()
    await db.query('commit')
    await client.waitForEnd(id, { timeout: '5s' })
    expect(performance.now() - committed).toBeLessThan(3_000)
  })

  test('under a key finds its task in the same transaction and after it, instants and all', async () => {
    const { client, db } = await start()
    const before = await client.submit('brew', 0, { idempotencyKey: 'order-0', delay: '1h' })
    await db.query('begin')
    const old = await client.submit('brew', 0, { tx: db, idempotencyKey: 'order-0' })
    const first = await client.submit('brew', 1, { tx: db, idempotencyKey: 'order-1' })
    const second = await client.submit('brew', 1, { tx: db, idempotencyKey: 'order-1' })
    await refused(client.submit('brew', 2, { tx: db, idempotencyKey: 'order-1' }), 'IDEMPOTENCY_CONFLICT')
    await db.query('commit')
    const third = await client.submit('brew', 1, { idempotencyKey: 'order-1' })
    expect([first, second, third].map(({ id }) => id)).toEqual(Array(3).fill(first.id))
    expect([old, first, second, third].map(({ deduplicated }) => deduplicated)).toEqual([true, false, true, true])
    expect(old.toJSON()).toEqual({ ...before.toJSON(), deduplicated: true })
    expect(await total(client)).toBe(2)
  })

  test('leaves that usable when it is refused, with what was written before', async () => {
    const { client, db } = await start()
    const { id } = await client.submit('brew', null)
    await db.query('begin')
    const kept = await client.submit('brew', null, { tx: db })
    await refused(client.submit('brew', null, { tx: db, id }), 'ALREADY_EXISTS')
    await refused(client.submit('no spaces, please', null, { tx: db }), 'INVALID_TASK')
    await refused(client.submit('brew', 10n as never, { tx: db }), 'INVALID_TASK')
    await db.query('commit')
    expect((await client.get(kept.id)).status).toBe('pending')
    expect(await total(client)).toBe(2)
  })

  test('is refused on another database, which stays in its transaction, and wherever there is none to join', async () => {
    const { client, db, schema } = await start()
    const elsewhere = await connectPg(await freshDatabase(url))
    await elsewhere.query('begin')
    await refused(client.submit('brew', null, { tx: elsewhere }), 'INVALID_OPTION')
    expect((await elsewhere.query('select 1 as one')).rows).toEqual([{ one: 1 }])
    // The same schema, but another store in it.
    await elsewhere.query(`create schema ${schema}`)
    await elsewhere.query(`create table ${schema}.meta (name text, value text)`)
    await refused(client.submit('brew', null, { tx: elsewhere }), 'INVALID_OPTION')
    await elsewhere.query('rollback')

    await refused(client.submit('brew', null, { tx: db }), 'INVALID_OPTION')
    const pool = new Pool({ connectionString: url })
    onTestFinished(() => pool.end())
    for (const tx of [pool, {}, null, 'begin'])
      await refused(client.submit('brew', null, { tx: tx as never }), 'INVALID_OPTION')
    // As a data source of TypeORM has it: a query function that commits each statement.
    const committing = { query: (text: string, values: unknown[]) => db.query(text, values) }
    await refused(client.submit('brew', null, { tx: committing }), 'INVALID_OPTION')
    expect(await total(client)).toBe(0)
  })

  test('is there with it too where a query function of the caller is all that is passed', async () => {
    const { client, db } = await start()
    const tx = { query: (text: string, values: unknown[]) => db.query(text, values) }
    for (const end of ['rollback', 'commit']) {
      await db.query('begin')
      await client.submit('brew', end, { tx })
      await db.query(end)
    }
    expect((await client.list()).tasks.map(({ input }) => input)).toEqual(['commit'])
    // The same object after the end of its transaction.
    await refused(client.submit('brew', 'late', { tx }), 'INVALID_OPTION')
  })

  test('that rolled back a part of itself to a savepoint loses that part alone', async () => {
    const { client, db } = await start()
    await db.query('begin')
    const kept = await client.submit('brew', 'kept', { tx: db })
    await db.query('savepoint mine')
    const dropped = await client.submit('brew', 'dropped', { tx: db })
    await db.query('rollback to savepoint mine')
    await db.query('commit')
    expect((await client.get(kept.id)).input).toBe('kept')
    await refused(client.get(dropped.id), 'TASK_NOT_FOUND')
  })

  test('of two that want one key waits for the other, and finds what that made', async () => {
    const { client, db } = await start()
    await db.query('begin')
    const first = await client.submit('brew', 1, { tx: db, idempotencyKey: 'k' })
    const second = client.submit('brew', 1, { idempotencyKey: 'k' })
    await db.query('commit')
    expect((await second).id).toBe(first.id)
    expect((await second).deduplicated).toBe(true)
  })
})

onPostgres('the example', (url) => {
  test('commits a row and its task together, and neither on rollback', async () => {
    const run = promisify(execFile)
    const { stdout } = await run(process.execPath, ['examples/postgres-transaction.ts', await freshDatabase(url)])
    expect(stdout).toBe('refused: a negative order\n1 orders, 1 receipts to send\n')
  })
})
