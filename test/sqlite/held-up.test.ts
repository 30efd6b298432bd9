/** A process that holds the file's lock for long holds up renewals, too: what was decided before must not take their leases after. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, onTestFinished, test } from 'vitest'
import { loseLease } from '../../src/core/machine.ts'
import { openSqlite } from '../../src/store/sqlite/store.ts'
import { claimOne, insert, NOW, stored, task } from '../../src/testing/conformance/build.ts'

test('a commit that waited for the lock for over a second takes no lease', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-held-up-'))
  const path = join(folder, 'a.db')
  const store = await openSqlite(path, { create: true })
  const other = new DatabaseSync(path)
  onTestFinished(async () => {
    other.close()
    await store.close()
    rmSync(folder, { recursive: true, force: true })
  })
  await insert(store, task(1))
  const { id } = await claimOne(store, { leaseTtl: 100 })
  const taking = async () => store.commit([loseLease(await stored(store, id), 'taker', NOW + 200, 0)])
  other.exec('begin immediate')
  const late = taking()
  await new Promise((done) => setTimeout(done, 1_200))
  other.exec('rollback')
  expect(await late).toEqual(['conflict'])
  expect((await stored(store, id)).status).toBe('running')
  expect(await taking()).toEqual(['written'])
})
