/** Through a real PgBouncer in transaction mode, with two connections to the server for everybody. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type PgBouncer, startPgBouncer } from '../servers/pgbouncer.ts'
import { runSql } from '../servers/schemas.ts'
import { begin, onPostgres } from './setup.ts'

onPostgres('behind PgBouncer', (url) => {
  let bouncer: PgBouncer | { readonly missing: string }
  beforeAll(async () => {
    bouncer = await startPgBouncer(url).catch((error: Error) => ({ missing: error.message }))
  })
  afterAll(async () => {
    if ('url' in bouncer) await bouncer.remove()
  })

  const through = (context: { skip(note: string): never }): string =>
    'url' in bouncer ? bouncer.url : context.skip(`PgBouncer could not be started: ${bouncer.missing}`)

  const shared = { listen: false, prepare: false } as const

  test('tasks are submitted, run once and renewed by three clients over two connections', async (context) => {
    const address = through(context)
    const { connect } = begin(url)
    const clients = [
      await connect({ through: address, postgres: shared }),
      await connect({ through: address, postgres: shared }),
      await connect({ through: address, postgres: shared }),
    ]
    const ran = new Map<unknown, number>()
    const workers = clients.map((client) =>
      client
        .worker({ concurrency: 10, leaseTtl: '1s', pollInterval: '100ms' })
        .handle('short', (n) => void ran.set(n, (ran.get(n) ?? 0) + 1))
        // Longer than its lease: kept by renewals, which go through PgBouncer too.
        .handle('long', async (n, { signal }) => {
          await new Promise((done) => setTimeout(done, 2_500))
          signal.throwIfAborted()
          ran.set(n, (ran.get(n) ?? 0) + 1)
        })
        .start(),
    )
    const items = Array.from({ length: 300 }, (_, n) => ({ type: n % 100 === 0 ? 'long' : 'short', input: n }))
    const told = await Promise.all([
      clients[0]!.submitMany(items),
      ...clients.map((client) =>
        client.submitMany(
          Array.from({ length: 20 }, (_, n) => ({ type: 'short', input: `k${n}`, idempotencyKey: `k${n}` })),
        ),
      ),
    ])
    expect(told.flat().filter(({ ok }) => !ok)).toEqual([])
    const ids = new Set(told.flat().map((result) => (result.ok ? result.task.id : '')))
    expect(ids.size).toBe(320)
    for (const id of ids) await clients[1]!.waitForEnd(id, { timeout: '30s' })
    expect((await clients[2]!.count({ status: 'completed' })).count).toBe(320)
    expect([...ran.values()].every((times) => times === 1)).toBe(true)
    await Promise.all(workers.map((worker) => worker.stop()))
  })

  /** The settings of every connection to the server that anybody may get next. */
  const leftOvers = async (address: string): Promise<ReadonlySet<unknown>> => {
    const asked = await Promise.all(
      Array.from({ length: 8 }, () => runSql(address, `select current_setting('search_path') as path, pg_sleep(0.05)`)),
    )
    return new Set(asked.flat().map(({ path }) => path))
  }

  test('nothing is left on a connection that belongs to everybody', async (context) => {
    const address = through(context)
    const { connect } = begin(url)
    const before = await leftOvers(address)
    const client = await connect({ through: address, postgres: shared })
    await client.submitMany(Array.from({ length: 50 }, (_, n) => ({ type: 'work', input: n })))
    await client
      .worker()
      .handle('work', () => null)
      .drain()
    expect(await leftOvers(address)).toEqual(before)
  })

  test('what somebody else leaves is noticed', async (context) => {
    const address = through(context)
    const before = await leftOvers(address)
    await runSql(address, `set search_path = elsewhere`)
    expect(await leftOvers(address)).not.toEqual(before)
    await Promise.all(Array.from({ length: 8 }, () => runSql(address, `reset search_path; select pg_sleep(0.05)`)))
  })

  test('an address alone may say how, and an option outranks it', async (context) => {
    const { connect } = begin(url)
    const address = `${through(context)}?listen=false&prepare=false&max=2`
    const client = await connect({ through: address })
    await client.submit('work', 1)
    await expect(connect({ through: address, postgres: { prepare: true } })).rejects.toMatchObject({
      code: 'INVALID_OPTION',
      message: expect.stringContaining('?prepare=false&listen=false'),
    })
  })

  test('a client that would keep the connection to itself is told how to connect', async (context) => {
    const address = through(context)
    const { connect } = begin(url)
    await expect(connect({ through: address })).rejects.toMatchObject({
      code: 'INVALID_OPTION',
      message: expect.stringContaining('prepare: false'),
    })
  })
})
