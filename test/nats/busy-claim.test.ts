/** SPEC 3.12 on NATS: a lease is kept from the claim on, also while the reply waits behind a busy event loop. */
import { expect, onTestFinished, test } from 'vitest'
import { computeBehindClaim } from '../crash/busy-claim.ts'
import { cleanUp } from '../crash/processes.ts'
import { freshBucket, removeBucket } from '../servers/buckets.ts'
import { onNats } from './setup.ts'

cleanUp()

onNats('a process that computes while its claim is under way', (url) => {
  const address = (): string => {
    const bucket = freshBucket()
    onTestFinished(() => removeBucket(url, bucket))
    return `${url}/${bucket}`
  }

  test('loses none of the tasks: with a lease of 5 s and 7 s of computing none fails', {
    timeout: 120_000,
  }, async () => {
    const { completed, retries, moves } = await computeBehindClaim(address(), { lease: 5_000, computes: 7_000 })
    expect({ completed, retries }).toEqual({ completed: 5, retries: 0 })
    expect(moves).not.toContain('lose-lease')
  })

  test("keeps them because the thread looks after the claim: with the bug 'keeps-no-claims' they are lost", {
    timeout: 120_000,
  }, async () => {
    const bug = { lease: 3_000, computes: 7_000, plant: 'keeps-no-claims' } as const
    const { failed } = await computeBehindClaim(address(), bug)
    // A lease that is written after the computing is young enough to be kept.
    expect(failed).toBeGreaterThan(0)
  })
})
