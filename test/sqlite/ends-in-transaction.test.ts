/** ctx.complete(output, { tx }) and ctx.step(name, fn, { tx }): rows of the handler and what the task records are there together, or neither is. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import Better from 'better-sqlite3'
import { drizzle } from 'drizzle-orm/better-sqlite3'
import { expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import {
  type Client,
  connect,
  defineTask,
  type Handler,
  silentLogger,
  type TaskContext,
  type Transaction,
} from '../../src/index.ts'
import { gate } from '../runtime/setup.ts'

interface Ground {
  readonly client: Client
  readonly db: DatabaseSync
  readonly path: string
  /** The names in the application's own table. */
  orders(): readonly unknown[]
  /** Runs one task of this handler until it has ended. */
  run(handler: Handler, options?: object): Promise<Awaited<ReturnType<Client['get']>>>
}

const begin = async (): Promise<Ground> => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-ends-'))
  const path = join(folder, 'app.db')
  const client = await connect(`sqlite:${path}`, { logger: silentLogger })
  const db = new DatabaseSync(path, { timeout: 5_000 })
  db.exec('create table orders (name text)')
  onTestFinished(async () => {
    db.close()
    await client.close()
    rmSync(folder, { recursive: true, force: true })
  })
  return {
    client,
    db,
    path,
    orders: () =>
      db
        .prepare('select name from orders order by name')
        .all()
        .map(({ name }) => name),
    async run(handler, options = {}) {
      const { id } = await client.submit(
        'order',
        { n: 1 },
        { retryPolicy: { base: '1ms', jitter: 'none' }, ...options },
      )
      const worker = client.worker().handle('order', handler).start()
      await client.waitForEnd(id, { timeout: '20s' })
      await worker.stop()
      return client.get(id)
    },
  }
}

const inTransaction = <T>(db: DatabaseSync, work: () => T): T => {
  db.exec('begin immediate')
  try {
    const result = work()
    db.exec('commit')
    return result
  } catch (error) {
    db.exec('rollback')
    throw error
  }
}

test('a task that its handler completes in a transaction ends with it, with the output given there', async () => {
  const { db, orders, run } = await begin()
  const task = await run((_, ctx) => {
    inTransaction(db, () => {
      db.exec(`insert into orders values ('tea')`)
      void ctx.complete({ charged: true }, { tx: db })
    })
    return 'not this'
  })
  expect(task).toMatchObject({ status: 'completed', output: { charged: true }, attempts: 1 })
  expect(task.history.map(({ move }) => move)).toEqual(['submit', 'claim', 'complete'])
  expect(orders()).toEqual(['tea'])
})

test('counts and events know the end of such a task', async () => {
  const { client, db, run } = await begin()
  const moves: string[] = []
  const seen = (async () => {
    for await (const { move } of client.events()) {
      moves.push(move)
      if (move === 'complete') return
    }
  })()
  await run((_, ctx) => inTransaction(db, () => ctx.complete(null, { tx: db })))
  await seen
  expect(moves).toEqual(['submit', 'claim', 'complete'])
  expect(await client.stats()).toMatchObject([{ queue: 'default', completed: 1, running: 0 }])
})

test('a handler whose transaction was rolled back has failed, and runs again', async () => {
  const { db, orders, run } = await begin()
  const task = await run((_, ctx) => {
    db.exec('begin immediate')
    db.exec(`insert into orders values ('${ctx.attempt}')`)
    void ctx.complete(ctx.attempt, { tx: db })
    db.exec(ctx.attempt === 1 ? 'rollback' : 'commit')
  })
  expect(task).toMatchObject({ status: 'completed', output: 2, attempts: 2, lastError: { code: 'TX_NOT_COMMITTED' } })
  expect(orders()).toEqual(['2'])
})

test('a handler that throws after the commit has completed its task all the same', async () => {
  const { db, orders, run } = await begin()
  const task = await run((_, ctx) => {
    inTransaction(db, () => {
      db.exec(`insert into orders values ('tea')`)
      void ctx.complete('done', { tx: db })
    })
    throw new Error('afterwards')
  })
  expect(task).toMatchObject({ status: 'completed', output: 'done', attempts: 1, lastError: null })
  expect(orders()).toEqual(['tea'])
})

test('a run that lost its lease cannot end in a transaction: the call throws at once, and nothing is committed', async () => {
  const { client, db, orders, run } = await begin()
  let thrown: unknown
  const task = await run(async (_, ctx) => {
    if (ctx.attempt === 2) return 'the second'
    // Taken away while the handler computes.
    await client.retry(ctx.task.id)
    try {
      inTransaction(db, () => {
        db.exec(`insert into orders values ('stale')`)
        void ctx.complete('the first', { tx: db })
      })
    } catch (error) {
      thrown = error
    }
  })
  expect(thrown).toMatchObject({ code: 'STALE_LEASE' })
  expect(orders()).toEqual([])
  expect(task).toMatchObject({ status: 'completed', output: 'the second' })
})

test('held open for three lease lengths: no lease is taken although renewals wait for its lock, and it ends its task', async () => {
  const { client, db, path } = await begin()
  await using other = await connect(`sqlite:${path}`, { logger: silentLogger })
  const held = await client.submit('held', null, { maxRetries: 0 })
  const long = await client.submit('long', null, { maxRetries: 0 })
  const aborted: string[] = []
  const [others, isHeld, released] = [gate(), gate(), gate()]
  const noting = (ctx: TaskContext): void =>
    ctx.signal.addEventListener('abort', () => aborted.push(`${ctx.task.type}: ${ctx.signal.reason.kind}`))
  const worker = client
    .worker({ leaseTtl: '1s', pollInterval: '100ms', concurrency: 10 })
    .handle('long', async (_, ctx) => {
      noting(ctx)
      await released.opened
    })
    .handle('held', async (_, ctx) => {
      noting(ctx)
      await others.opened
      db.exec('begin immediate')
      db.exec(`insert into orders values ('tea')`)
      void ctx.complete('in time', { tx: db })
      isHeld.open()
      await released.opened
      db.exec('commit')
    })
    .start()
  await expect.poll(async () => (await client.get(long.id)).status, { timeout: 20_000 }).toBe('running')
  // It would take what lapses.
  const taker = other
    .worker({ leaseTtl: '1s', pollInterval: '100ms' })
    .handle('long', () => 'taken')
    .start()
  others.open()
  await isHeld.opened
  // Three lease lengths, which is what this is about.
  await new Promise((done) => setTimeout(done, 3_200))
  released.open()
  expect(await other.wait(held.id, { timeout: '20s' })).toBe('in time')
  await other.waitForEnd(long.id, { timeout: '20s' })
  // Nobody can renew meanwhile, so the handlers are told that they may have lost their leases.
  expect(aborted.toSorted()).toEqual(['held: lease-lost', 'long: lease-lost'])
  for (const { id } of [held, long]) expect(await other.get(id)).toMatchObject({ status: 'completed', attempts: 1 })
  await Promise.all([worker.stop(), taker.stop()])
})

test('a step in a transaction is recorded with its rows, or neither is', async () => {
  const { db, orders, run } = await begin()
  const keys: string[] = []
  const task = await run(async (_, ctx) => {
    db.exec('begin immediate')
    const charge = ctx.step(
      'charge',
      ({ key }) => {
        keys.push(key)
        db.exec(`insert into orders values ('run ${ctx.attempt}')`)
        return { attempt: ctx.attempt }
      },
      { tx: db },
    )
    db.exec(ctx.attempt === 1 ? 'rollback' : 'commit')
    if (ctx.attempt < 3) throw new Error('again')
    return charge
  })
  expect(orders()).toEqual(['run 2'])
  expect(task).toMatchObject({ status: 'completed', output: { attempt: 2 }, attempts: 3 })
  expect(new Set(keys)).toEqual(new Set([`${task.id}:charge`]))
})

test('a step may come again in the same run, because its transaction may have been rolled back', async () => {
  const { db, orders, run } = await begin()
  const task = await run((_, ctx) => {
    for (const end of ['rollback', 'commit', 'commit']) {
      db.exec('begin immediate')
      void ctx.step('charge', () => void db.exec(`insert into orders values ('${end}')`), { tx: db })
      db.exec(end)
    }
  })
  expect(task).toMatchObject({ status: 'completed', attempts: 1 })
  expect(orders()).toEqual(['commit'])
})

test('a step in a transaction, a plain step and the end of the task follow each other', async () => {
  const { db, orders, run } = await begin()
  const task = await run(async (_, ctx) => {
    await ctx.step('before', () => 1)
    inTransaction(db, () => ctx.step('charge', () => void db.exec(`insert into orders values ('tea')`), { tx: db }))
    await ctx.step('after', () => 2)
    inTransaction(db, () => {
      db.exec(`insert into orders values ('end')`)
      return ctx.complete('done', { tx: db })
    })
  })
  expect(task).toMatchObject({ status: 'completed', output: 'done', attempts: 1 })
  expect(task.steps.map(({ name }) => name)).toEqual(['before', 'charge', 'after'])
  expect(orders()).toEqual(['end', 'tea'])
})

test('a step in a transaction must be synchronous, and an end needs a schema that is', async () => {
  const { client, db } = await begin()
  const slow = defineTask('order', { output: z.string().refine(async () => true) })
  const thrown: unknown[] = []
  const caught = (call: () => unknown): void => {
    db.exec('begin immediate')
    try {
      call()
    } catch (error) {
      thrown.push(error)
    }
    db.exec('rollback')
  }
  const { id } = await client.submit(slow, null)
  const worker = client.worker().handle(slow, (_, ctx) => {
    caught(() => ctx.step('charge', async () => 1, { tx: db }))
    caught(() => ctx.complete('x', { tx: db }))
    caught(() => ctx.complete('x', { tx: db, more: 1 } as never))
    return 'done'
  })
  await worker.drain()
  expect(thrown).toMatchObject([
    { code: 'INVALID_OPTION', message: expect.stringContaining('must be synchronous') },
    { code: 'INVALID_OPTION', message: expect.stringContaining('asynchronously') },
    { code: 'INVALID_OPTION' },
  ])
  expect((await client.get(id)).status).toBe('completed')
})

test('what the schema says against the output is recorded, as it is without a transaction', async () => {
  const { client, db } = await begin()
  const order = defineTask('order', { output: z.object({ total: z.number() }) })
  const { id } = await client.submit(order, null)
  const worker = client.worker().handle(order, (_, ctx) => {
    inTransaction(db, () => ctx.complete({ total: 'much' }, { tx: db }))
    return { total: 0 }
  })
  await worker.drain()
  expect(await client.get(id)).toMatchObject({
    status: 'completed',
    output: { total: 'much' },
    outputError: expect.stringContaining('total'),
  })
})

test('neither is possible on a store without transactions', async () => {
  await using client = await connect('memory:', { logger: silentLogger })
  const { id } = await client.submit('order', null, { maxRetries: 0 })
  await client
    .worker()
    .handle('order', (_, ctx) => ctx.complete(1, { tx: {} as Transaction }))
    .drain()
  expect((await client.get(id)).lastError).toMatchObject({
    code: 'INVALID_OPTION',
    message: expect.stringContaining('no transactions'),
  })
})

test('better-sqlite3: submit, a step and the end are in its transaction', async () => {
  const { client, path, orders, run } = await begin()
  const db = new Better(path, { timeout: 5_000 })
  onTestFinished(() => void db.close())
  const task = await run((_, ctx) => {
    const attempt = db.transaction((fails: boolean) => {
      db.prepare('insert into orders values (?)').run('tea')
      void client.submit('receipt', null, { tx: db })
      void ctx.step('charge', () => ({ paid: true }), { tx: db })
      void ctx.complete('done', { tx: db })
      if (fails) throw new Error('rolled back')
    })
    if (ctx.attempt === 1) attempt.immediate(true)
    attempt.immediate(false)
  })
  expect(task).toMatchObject({ status: 'completed', output: 'done', attempts: 2 })
  expect(task.steps).toMatchObject([{ name: 'charge', value: { paid: true } }])
  expect(orders()).toEqual(['tea'])
  expect((await client.count({ type: 'receipt' })).count).toBe(1)
})

test('drizzle over better-sqlite3: its transaction is enough', async () => {
  const { path, orders, run } = await begin()
  const sqlite = new Better(path, { timeout: 5_000 })
  onTestFinished(() => void sqlite.close())
  const db = drizzle({ client: sqlite })
  const task = await run((_, ctx) => {
    db.transaction(
      (tx) => {
        tx.run(`insert into orders values ('tea')`)
        void ctx.complete('done', { tx })
      },
      { behavior: 'immediate' },
    )
  })
  expect(task).toMatchObject({ status: 'completed', output: 'done', attempts: 1 })
  expect(orders()).toEqual(['tea'])
})
