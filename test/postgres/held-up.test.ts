/** A lock on the table holds up renewals, too: what was decided before must not take their leases after. */
import pg from 'pg'
import { expect, onTestFinished, test } from 'vitest'
import { loseLease } from '../../src/core/machine.ts'
import { openPostgres } from '../../src/store/postgres/store.ts'
import { claimOne, insert, NOW, stored, task } from '../../src/testing/conformance/build.ts'
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
})
