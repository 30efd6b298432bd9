/** `tx` is the transaction of the library that the application uses, as that library passes it to the caller. */
import { drizzle } from 'drizzle-orm/node-postgres'
import { drizzle as drizzleOverPostgresJs } from 'drizzle-orm/postgres-js'
import knex from 'knex'
import { Kysely, PostgresDialect } from 'kysely'
import { Client as PgClient, Pool } from 'pg'
import postgres from 'postgres'
import { expect, onTestFinished, test } from 'vitest'
import type { Transaction } from '../../src/index.ts'
import { begin, onPostgres } from './setup.ts'

/** Runs `work` in a transaction, which is committed if it resolves and rolled back if it rejects. */
type InTransaction = <T>(work: (tx: Transaction) => Promise<T>) => Promise<T>

const poolOf = (url: string): Pool => {
  const pool = new Pool({ connectionString: url })
  onTestFinished(() => pool.end())
  return pool
}

/** What prisma 7 passes to the function of $transaction: rows are a plain array, bigints are BigInts, and $transaction makes a savepoint. */
const prismaOver = (db: PgClient) => ({
  $transaction: () => Promise.reject(new Error('not needed here')),
  async $queryRawUnsafe(text: string, ...values: unknown[]): Promise<object[]> {
    const { rows, fields } = await db.query(text, values)
    const bigints = new Set(fields.filter(({ dataTypeID }) => dataTypeID === 20).map(({ name }) => name))
    return rows.map((row) =>
      Object.fromEntries(
        Object.entries(row).map(([name, value]) => [
          name,
          bigints.has(name) && value !== null ? BigInt(value as string) : value,
        ]),
      ),
    )
  },
})

const LIBRARIES: Readonly<Record<string, (url: string) => InTransaction>> = {
  'drizzle over pg': (url) => {
    const db = drizzle(poolOf(url))
    return (work) => db.transaction((tx) => work(tx))
  },
  'drizzle over postgres.js': (url) => {
    const sql = postgres(url)
    onTestFinished(() => sql.end())
    const db = drizzleOverPostgresJs(sql)
    return (work) => db.transaction((tx) => work(tx))
  },
  kysely: (url) => {
    const db = new Kysely({ dialect: new PostgresDialect({ pool: new Pool({ connectionString: url }) }) })
    onTestFinished(() => db.destroy())
    return (work) => db.transaction().execute((trx) => work(trx))
  },
  knex: (url) => {
    const db = knex({ client: 'pg', connection: url })
    onTestFinished(() => db.destroy())
    return (work) => db.transaction((trx) => work(trx))
  },
  'postgres.js': (url) => {
    const sql = postgres(url)
    onTestFinished(() => sql.end())
    return (work) => sql.begin((tx) => work(tx)) as ReturnType<typeof work>
  },
  prisma: (url) => async (work) => {
    const db = new PgClient({ connectionString: url })
    await db.connect()
    try {
      await db.query('begin')
      const result = await work(prismaOver(db))
      await db.query('commit')
      return result
    } catch (error) {
      await db.query('rollback')
      throw error
    } finally {
      await db.end()
    }
  },
}

onPostgres('a transaction', (url) => {
  const start = async (library: string) => {
    const bench = begin(url)
    return { client: await bench.connect(), inTransaction: LIBRARIES[library]!(url) }
  }
  const rolledBack = new Error('rolled back')

  test.each(Object.keys(LIBRARIES))('of %s commits a submit, rolls it back, and knows its keys', async (library) => {
    const { client, inTransaction } = await start(library)
    const before = await client.submit('brew', 0, { idempotencyKey: 'old', ttl: '1h', tags: { a: 'b' } })
    const [kept, keyed, again, old] = await inTransaction(async (tx) => [
      await client.submit('brew', { library, text: `naïve ? $1 "☃" \\ '` }, { tx, group: 'a "b" \\ {c}' }),
      await client.submit('brew', 1, { tx, idempotencyKey: 'new' }),
      await client.submit('brew', 1, { tx, idempotencyKey: 'new' }),
      await client.submit('brew', 0, { tx, idempotencyKey: 'old' }),
    ])
    expect(await client.get(kept!.id)).toMatchObject({
      input: { library, text: `naïve ? $1 "☃" \\ '` },
      group: 'a "b" \\ {c}',
    })
    expect([again!.id, again!.deduplicated]).toEqual([keyed!.id, true])
    expect(old!.toJSON()).toEqual({ ...before.toJSON(), deduplicated: true })
    let lost = ''
    const failing = inTransaction(async (tx) => {
      lost = (await client.submit('brew', null, { tx })).id
      throw rolledBack
    })
    await expect(failing).rejects.toThrow('rolled back')
    await expect(client.get(lost)).rejects.toMatchObject({ code: 'TASK_NOT_FOUND' })
  })

  test.each(Object.keys(LIBRARIES))('of %s commits a step and the end of a task', async (library) => {
    const { client, inTransaction } = await start(library)
    const ran: string[] = []
    const worker = client.worker().handle('order', async (_, ctx) => {
      await inTransaction(async (tx) => {
        await ctx.step('charge', async ({ key }) => void ran.push(key), { tx })
      })
      if (ctx.attempt === 1) throw new Error('after the step')
      await inTransaction((tx) => ctx.complete({ by: library }, { tx }))
      return 'not this'
    })
    const { id } = await client.submit('order', null, { retryPolicy: { base: '1ms', jitter: 'none' } })
    await worker.drain()
    const task = await client.get(id)
    expect(task.lastError?.message).toBe('after the step')
    expect(task).toMatchObject({ status: 'completed', output: { by: library }, attempts: 2 })
    expect(task.steps).toMatchObject([{ name: 'charge', status: 'done' }])
    expect(ran).toEqual([`${id}:charge`])
  })

  test('is refused where none is open, and says what to pass instead', async () => {
    const { client } = await start('kysely')
    const refuses = (tx: unknown, message: RegExp): Promise<void> =>
      expect(client.submit('brew', null, { tx: tx as Transaction })).rejects.toMatchObject({
        code: 'INVALID_OPTION',
        message: expect.stringMatching(message),
      })
    const pool = poolOf(url)
    const sql = postgres(url)
    const db = knex({ client: 'pg', connection: url })
    const kysely = new Kysely({ dialect: new PostgresDialect({ pool: new Pool({ connectionString: url }) }) })
    onTestFinished(async () => void (await Promise.all([sql.end(), db.destroy(), kysely.destroy()])))
    await refuses(pool, /pool/)
    await refuses(drizzle(pool), /db\.transaction/)
    await refuses(kysely, /trx/)
    await refuses(db, /trx/)
    await refuses(sql, /sql\.begin/)
    await refuses({ ...prismaOver(new PgClient()), $connect: async () => {} }, /prisma\.\$transaction/)
    await refuses({}, /must be a transaction of pg, drizzle/)
    expect((await client.count()).count).toBe(0)
  })
})
