/** What only shows in a SQLite file that has grown: long histories, and lists over more rows than one step may pass. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openSqlite } from '../../src/store/sqlite/store.ts'
import type { Store } from '../../src/store/store.ts'
import {
  claimOne,
  commitAndCompare,
  idOf,
  ids,
  idsOf,
  insert,
  NOW,
  stored,
  task,
} from '../../src/testing/conformance/build.ts'
import { cancelAt, rescheduleAt } from '../../src/testing/conformance/moves.ts'

let folder: string
let path: string
let store: Store

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'holdfast-size-'))
  path = join(folder, 'store.db')
  store = await openSqlite(path)
})

afterEach(async () => {
  await store.close()
  await rm(folder, { recursive: true, force: true })
})

const longestHistory = (): number => {
  const db = new DatabaseSync(path, { readOnly: true })
  const row = db.prepare('select max(length(history)) as longest from holdfast_task').get()
  db.close()
  return row?.['longest'] as number
}

// Claims do not trim. A task that polls is claimed at every even revision, and was never trimmed at the round ones.
test.each([0, 1])(
  'the stored history of a task that sleeps for ever stays bounded (%i moves by hand first)',
  async (byHand) => {
    await insert(store, task(1))
    if (byHand > 0) {
      await commitAndCompare(store, idOf(1), (record) => ({ ...cancelAt(NOW)(record)!, set: { status: 'pending' } }))
    }
    let atTwoHundred = 0
    for (let now = NOW; now < NOW + 450; now++) {
      const leased = await claimOne(store, { now })
      await store.commit([rescheduleAt(now, 0)(leased)!])
      if (leased.revision >= 200 && atTwoHundred === 0) atTwoHundred = longestHistory()
    }
    expect((await stored(store, idOf(1))).revision).toBeGreaterThan(900)
    expect(longestHistory()).toBeLessThan(atTwoHundred * 1.5)
  },
)

test('a list finds the few that match among more rows than one step passes, in both orders', async () => {
  const rare = new Set([3, 4_999, 5_000, 5_001, 10_000, 12_000])
  const tasks = Array.from({ length: 12_001 }, (_, i) => task(i + 1, { type: rare.has(i + 1) ? 'rare' : 'email' }))
  await insert(store, ...tasks)
  const oldest = (await store.list({ type: 'rare' }, { order: 'oldest', limit: 100, now: NOW })).tasks
  expect(idsOf(oldest)).toEqual(ids(...rare))
  const newest = (await store.list({ type: 'rare' }, { order: 'newest', limit: 4, now: NOW })).tasks
  expect(idsOf(newest)).toEqual(ids(12_000, 10_000, 5_001, 5_000))
  const rest = (await store.list({ type: 'rare' }, { order: 'newest', limit: 4, now: NOW, after: idOf(5_000) })).tasks
  expect(idsOf(rest)).toEqual(ids(4_999, 3))
  expect((await store.list({ type: 'none' }, { order: 'oldest', limit: 5, now: NOW })).tasks).toEqual([])
})
