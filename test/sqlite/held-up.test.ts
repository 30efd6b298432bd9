/** A process that holds the file's lock for long holds up renewals, too: what was decided before must not take their leases after. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, onTestFinished, test } from 'vitest'
import { loseLease } from '../../src/core/machine.ts'
import { openSqlite } from '../../src/store/sqlite/store.ts'
import { claimOne, insert, NOW, stored, task } from '../../src/testing/conformance/build.ts'

/** A task whose lease has lapsed, and another process that can hold the lock. */
const lapsed = async () => {
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
  return { store, other, id }
}

test('a commit that waited for the lock for over a second takes no lease', async () => {
  const { store, other, id } = await lapsed()
  const taking = async () => store.commit([loseLease(await stored(store, id), 'taker', NOW + 200, 0)])
  other.exec('begin immediate')
  const late = taking()
  await new Promise((done) => setTimeout(done, 1_200))
  other.exec('rollback')
  expect(await late).toEqual(['conflict'])
  expect((await stored(store, id)).status).toBe('running')
  expect(await taking()).toEqual(['written'])
})

test('a look that finds a lapsed lease waits for the lock, as renewals do, and then reports none: they come first', async () => {
  const { store, other, id } = await lapsed()
  const want = { queue: 'default', types: null, limit: 0, workerId: 'taker', leaseTtl: 100, op: 'look', dueLimit: 10 }
  const look = async () => (await store.claim({ ...want, now: NOW + 200 })).due.map((task) => task.id)
  other.exec('begin immediate')
  let isAnswered = false
  const late = look().finally(() => {
    isAnswered = true
  })
  await new Promise((done) => setTimeout(done, 400))
  expect(isAnswered).toBe(false)
  other.exec('rollback')
  expect(await late).toEqual([])
  expect(await look()).toEqual([id])
})
