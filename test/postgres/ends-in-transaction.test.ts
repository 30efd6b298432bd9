/** ctx.complete(output, { tx }) and ctx.step(name, fn, { tx }) on PostgreSQL, where the row of the task stays locked until the transaction ends. */
import { Client as PgClient } from 'pg'
import { expect, onTestFinished, test } from 'vitest'
import type { TaskContext } from '../../src/index.ts'
import { begin, onPostgres } from './setup.ts'

const connectPg = async (url: string): Promise<PgClient> => {
  const db = new PgClient({ connectionString: url })
  await db.connect()
  onTestFinished(() => db.end())
  return db
}

onPostgres('a transaction of a handler', (url) => {
  const start = async () => {
    const bench = begin(url)
    const client = await bench.connect()
    await bench.sql(`create table ${bench.schema}.orders (name text)`)
    const db = await connectPg(url)
    const orders = async (): Promise<readonly unknown[]> =>
      (await bench.sql(`select name from ${bench.schema}.orders order by name`)).map(({ name }) => name)
    const order = (name: string) => db.query(`insert into ${bench.schema}.orders values ($1)`, [name])
    return { ...bench, client, db, orders, order }
  }
  const QUICK = { retryPolicy: { base: '1ms', jitter: 'none' } } as const

  test('that was rolled back ends nothing: the run has failed, and the next one does both', async () => {
    const { client, db, order, orders } = await start()
    const { id } = await client.submit('order', null, QUICK)
    const worker = client.worker().handle('order', async (_, ctx) => {
      await db.query('begin')
      await order(`run ${ctx.attempt}`)
      await ctx.complete(ctx.attempt, { tx: db })
      await db.query(ctx.attempt === 1 ? 'rollback' : 'commit')
    })
    await worker.drain()
    expect(await client.get(id)).toMatchObject({
      status: 'completed',
      output: 2,
      lastError: { code: 'TX_NOT_COMMITTED' },
    })
    expect(await orders()).toEqual(['run 2'])
  })

  test('decides again inside, when the task was cancelled, signalled or amended since it was claimed', async () => {
    const { client, db } = await start()
    const { id } = await client.submit('order', null)
    const worker = client.worker().handle('order', async (_, ctx) => {
      await client.signal(ctx.task.id, 'hello', 1)
      await client.cancel(ctx.task.id)
      await db.query('begin')
      await ctx.step('charge', () => 1, { tx: db })
      await ctx.complete('done', { tx: db })
      await db.query('commit')
    })
    await worker.drain()
    const task = await client.get(id)
    expect(task).toMatchObject({ status: 'completed', output: 'done' })
    expect(task.steps).toMatchObject([{ name: 'charge', value: 1 }])
    expect(task.signals).toMatchObject([{ name: 'hello' }])
  })

  test('of a run that has lost its lease is refused, and stays usable', async () => {
    const { client, db, order, orders } = await start()
    const { id } = await client.submit('order', null, QUICK)
    const codes: unknown[] = []
    const stale = async (ctx: TaskContext): Promise<void> => {
      await client.retry(id)
      await db.query('begin')
      await order('kept')
      for (const call of [() => ctx.complete(1, { tx: db }), () => ctx.step('charge', () => 1, { tx: db })])
        await call().catch(({ code }: { code: string }) => codes.push(code))
      await db.query('commit')
    }
    const worker = client.worker().handle('order', (_, ctx) => (ctx.attempt === 1 ? stale(ctx) : 'the second'))
    await worker.drain()
    expect(codes).toEqual(['STALE_LEASE', 'STALE_LEASE'])
    expect(await orders()).toEqual(['kept'])
    expect(await client.get(id)).toMatchObject({ output: 'the second', attempts: 2 })
  })

  test('held open for three lease lengths stops no renewal, no end and no look of others, and then ends its task', async () => {
    const { client, connect, db } = await start()
    const leaseTtl = '1s'
    const other = await connect()
    const held = await client.submit('held', null, { maxRetries: 0 })
    const long = await client.submit('long', null, { maxRetries: 0 })
    const aborted: string[] = []
    let letGo = (): void => {}
    const released = new Promise<void>((done) => {
      letGo = done
    })
    const worker = client.worker({ leaseTtl, pollInterval: '100ms', concurrency: 10 })
    worker.handle('held', async (_, ctx) => {
      ctx.signal.addEventListener('abort', () => aborted.push(String(ctx.signal.reason)))
      await db.query('begin')
      await ctx.complete('in time', { tx: db })
      await released
      await db.query('commit')
    })
    worker.handle('long', async (_, ctx) => {
      ctx.signal.addEventListener('abort', () => aborted.push(String(ctx.signal.reason)))
      await released
    })
    worker.handle('short', () => null)
    worker.start()
    // Another worker would take what lapses.
    other
      .worker({ leaseTtl, pollInterval: '100ms' })
      .handle('other', () => null)
      .start()
    await expect.poll(async () => (await client.get(long.id)).status).toBe('running')
    const from = performance.now()
    const took: number[] = []
    while (performance.now() - from < 3_500) {
      const begun = performance.now()
      await client.wait(await client.submit('short', null), { timeout: '3s' })
      took.push(performance.now() - begun)
    }
    expect((await client.get(held.id)).status).toBe('running')
    letGo()
    expect(await client.wait(held.id, { timeout: '5s' })).toBe('in time')
    await client.wait(long.id, { timeout: '5s' })
    expect(aborted).toEqual([])
    expect((await client.get(long.id)).attempts).toBe(1)
    expect((await client.get(held.id)).attempts).toBe(1)
    expect(took.length).toBeGreaterThan(10)
  })

  test('still open at the next step of the run is named, and the step does not wait for ever', async () => {
    const { client, db } = await start()
    const { id } = await client.submit('order', null, { maxRetries: 0, timeout: null })
    const worker = client.worker().handle('order', async (_, ctx) => {
      await db.query('begin')
      await ctx.step('charge', () => 1, { tx: db })
      await ctx.step('mail', () => 2).finally(() => db.query('rollback'))
    })
    await worker.drain()
    expect((await client.get(id)).lastError).toMatchObject({
      code: 'TX_NOT_COMMITTED',
      message: expect.stringContaining('end it before the next step'),
    })
  })
})
