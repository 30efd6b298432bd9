/** A lock on the table holds up renewals, too: what was decided before must not take their leases after. */
import pg from 'pg'
import { expect, onTestFinished, test, vi } from 'vitest'
import { loseLease } from '../../src/core/machine.ts'
import { openPostgres } from '../../src/store/postgres/store.ts'
import { claimOne, insert, NOW, stored, task, want } from '../../src/testing/conformance/build.ts'
import { begin, onPostgres } from './setup.ts'

onPostgres('a table that somebody has locked', (url) => {
  test('a commit that waited for the lock for over a second takes no lease', async () => {
    const { schema } = begin(url)
    const store = await openPostgres(url, { schema, create: true })
    const other = new pg.Client(url)
    await other.connect()
    onTestFinished(async () => {
      await other.end()
      await store.close()
    })
    await insert(store, task(1))
    const { id } = await claimOne(store, { leaseTtl: 100 })
    const change = loseLease(await stored(store, id), 'taker', NOW + 200, 0)
    await other.query(`begin; lock table ${schema}.task in access exclusive mode`)
    const late = store.commit([change])
    await new Promise((done) => setTimeout(done, 1_300))
    await other.query('rollback')
    expect(await late).toEqual(['conflict'])
    expect((await stored(store, id)).status).toBe('running')
    expect(await store.commit([change])).toEqual(['written'])
  })

  test('against writes alone: a look for lapsed leases waits as renewals do, although it could read', async () => {
    const { schema } = begin(url)
    const store = await openPostgres(url, { schema, create: true })
    const other = new pg.Client(url)
    await other.connect()
    onTestFinished(async () => {
      await other.end()
      await store.close()
    })
    await insert(store, task(1))
    await claimOne(store, { leaseTtl: 100 })
    await other.query(`begin; lock table ${schema}.task in share mode`)
    let isOver = false
    const look = store.claim(want({ limit: 0, now: null })).finally(() => {
      isOver = true
    })
    await vi.waitFor(
      async () => {
        const waiting = `select 1 from pg_locks where not granted and relation = '${schema}.task'::regclass`
        expect((await other.query(waiting)).rowCount).toBeGreaterThan(0)
      },
      { timeout: 10_000 },
    )
    expect(isOver).toBe(false)
    await other.query('rollback')
    expect((await look).due).toHaveLength(1)
  })
})
