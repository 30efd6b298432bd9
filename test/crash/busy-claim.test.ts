/** SPEC 3.12: a lease is kept from the claim on, also while the reply waits behind a busy event loop. Side by side: nearly all of it is waiting. */
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { computeBehindClaim } from './busy-claim.ts'
import { cleanUp, folder } from './processes.ts'

cleanUp(afterAll)

const file = (): string => join(folder(), 'busy.db')

test.concurrent('tasks that were claimed behind 7 s of computing are not lost with a lease of 5 s: none fails, each runs once', async () => {
  const { completed, retries, moves, runs } = await computeBehindClaim(file(), { lease: 5_000, computes: 7_000 })
  expect({ completed, retries, runs }).toEqual({ completed: 5, retries: 0, runs: 5 })
  expect(moves).not.toContain('lose-lease')
})

test.concurrent('computing for less than a lease, in sight of its end, costs nothing at all', async () => {
  const { completed, moves, runs } = await computeBehindClaim(file(), { lease: 4_000, computes: 3_000 })
  expect({ completed, moves, runs }).toEqual({ completed: 5, moves: ['submit', 'claim', 'complete'], runs: 5 })
})

test.concurrent('what was claimed and not started for one lease length is released, without a retry', async () => {
  const { completed, retries, moves } = await computeBehindClaim(file(), { lease: 1_000, computes: 4_000 })
  expect({ completed, retries }).toEqual({ completed: 5, retries: 0 })
  expect(moves).toContain('release')
  expect(moves).not.toContain('lose-lease')
})

test.concurrent("it is the keeper that looks after the claim: with the bug 'keeps-no-claims' all are lost", async () => {
  const { failed, moves } = await computeBehindClaim(file(), {
    lease: 2_000,
    computes: 4_500,
    plant: 'keeps-no-claims',
  })
  expect(failed).toBe(5)
  expect(moves).toContain('lose-lease')
})
