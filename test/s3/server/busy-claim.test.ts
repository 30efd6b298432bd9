/** SPEC 3.12 on S3: a lease is kept from the claim on, also while the reply waits behind a busy event loop. */
import { expect, test } from 'vitest'
import { computeBehindClaim } from '../../crash/busy-claim.ts'
import { cleanUp } from '../../crash/processes.ts'
import { addressOf, freshPrefix } from '../setup.ts'
import { onS3 } from './setup.ts'

cleanUp()

onS3('a process that computes while its claim is under way', (target) => {
  test('loses none of the tasks: with a lease of 6 s and 9 s of computing none fails', {
    timeout: 180_000,
  }, async () => {
    const address = addressOf(target, freshPrefix())
    const { completed, retries, moves } = await computeBehindClaim(address, { lease: 6_000, computes: 9_000 })
    expect({ completed, retries }).toEqual({ completed: 5, retries: 0 })
    expect(moves).not.toContain('lose-lease')
  })

  test("keeps them because the thread looks after the claim: with the bug 'keeps-no-claims' they are lost", {
    timeout: 180_000,
  }, async () => {
    const bug = { lease: 6_000, computes: 14_000, plant: 'keeps-no-claims' } as const
    const { failed } = await computeBehindClaim(addressOf(target, freshPrefix()), bug)
    // A lease that is written after the computing is young enough to be kept.
    expect(failed).toBeGreaterThan(0)
  })
})
