/** 100,000 tasks from one file to another. */
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { moveRate } from '../crash/move-rate.ts'
import { cleanUp, folder } from '../crash/processes.ts'
import { report } from '../crash/seed.ts'

cleanUp()

test('100,000 tasks move from one SQLite file to another, with their histories and keys', async () => {
  const place = folder()
  const { rate, arrived } = await moveRate(join(place, 'from.db'), join(place, 'to.db'), 100_000)
  report(`move: 100,000 tasks from SQLite to SQLite at ${Math.round(rate)} a second`)
  expect(arrived).toBe(100_000)
  // Far below what a quiet machine does: only to notice a move that crawls.
  expect(rate).toBeGreaterThan(300)
})
