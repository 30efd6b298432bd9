/** Batches that want the same rows in another order, keys that many want at once, and claims in between. */
import { expect, test } from 'vitest'
import { fail } from '../../src/core/machine.ts'
import { openPostgres } from '../../src/store/postgres/store.ts'
import { report } from '../crash/seed.ts'
import { begin, onPostgres } from './setup.ts'

onPostgres('batches that meet', (url) => {
  test('renewals, endings and removals of the same tasks in opposite orders wait for each other, not for ever', async () => {
    const { schema, connect, sql } = begin(url)
    const client = await connect()
    const store = await openPostgres(url, { schema, max: 6 })
    const deadlocks = async (): Promise<number> => {
      const [row] = await sql(`select deadlocks::int as n from pg_stat_database where datname = current_database()`)
      return row!['n'] as number
    }
    const before = await deadlocks()
    let longest = 0
    const timed = async <T>(call: Promise<T>): Promise<T> => {
      const begun = performance.now()
      const result = await call
      longest = Math.max(longest, performance.now() - begun)
      return result
    }
    for (let round = 0; round < 40; round++) {
      await client.submitMany(Array.from({ length: 100 }, () => ({ type: 'work', input: null })))
      const { leased } = await store.claim({
        queue: 'default',
        types: ['work'],
        limit: 100,
        workerId: 'w',
        op: `op${round}`,
        leaseTtl: 60_000,
        dueLimit: 0,
        now: null,
      })
      expect(leased.length).toBe(100)
      const backwards = [...leased].reverse()
      const renewals = leased.map(({ id, lease }) => ({ id, token: lease!.token, leaseTtl: 60_000 }))
      const endings = backwards.map((task) =>
        fail(
          task,
          { token: task.lease!.token },
          {
            error: { name: 'Error', message: 'x', at: 0, attempt: 1 },
            permanent: true,
            now: Date.now(),
            random: 0,
          },
        ),
      )
      const shuffled = [...renewals].sort(() => Math.random() - 0.5)
      const removals = backwards.map(({ id }) => ({ id, revision: 99, endKey: false }))
      await Promise.all([
        timed(store.renew(renewals, null)),
        timed(store.renew([...renewals].reverse(), null)),
        timed(store.renew(shuffled, null)),
        timed(store.remove(removals)),
        timed(store.commit(endings)),
      ])
    }
    const met = (await deadlocks()) - before
    report(`contention: ${met} deadlocks in 40 rounds, longest call ${longest.toFixed(0)} ms`)
    await store.close()
    expect((await client.count({ status: 'failed' })).count).toBe(4_000)
    // 61 before rows were locked in the order of their ids, and one now and then until renewals stopped waiting.
    expect(met).toBe(0)
  })

  test('many clients that want the same keys in any order make one task for each', async () => {
    const { connect } = begin(url)
    const clients = await Promise.all([connect(), connect(), connect(), connect()])
    const keys = Array.from({ length: 50 }, (_, i) => `key-${i}`)
    const told = await Promise.all(
      clients.flatMap((client) =>
        Array.from({ length: 3 }, () =>
          client.submitMany(
            [...keys].sort(() => Math.random() - 0.5).map((key) => ({ type: 'work', input: key, idempotencyKey: key })),
          ),
        ),
      ),
    )
    const results = told.flat()
    expect(results.filter(({ ok }) => !ok)).toEqual([])
    const fresh = results.filter((result) => result.ok && !result.task.deduplicated)
    expect(fresh.length).toBe(keys.length)
    expect((await clients[0]!.count()).count).toBe(keys.length)
  })
})
