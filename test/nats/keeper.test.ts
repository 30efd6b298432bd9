/** Heartbeats come from a thread with a connection of its own: a busy event loop does not lose leases. */
import { afterAll, expect, type TestContext, test } from 'vitest'
import { block } from '../crash/blocking.ts'
import { cleanUp } from '../crash/processes.ts'
import { freshBucket, removeBucket } from '../servers/buckets.ts'
import { onNats } from './setup.ts'

cleanUp(afterAll)

/** Long enough for a thread to be ready on a busy machine. */
const LEASE = 3_000

onNats('a handler that computes for three lease lengths without yielding', (url) => {
  const address = (own: TestContext): string => {
    const bucket = freshBucket()
    own.onTestFinished(() => removeBucket(url, bucket))
    return `${url}/${bucket}`
  }

  test.concurrent('keeps its lease while another worker looks', { timeout: 120_000 }, async (own) => {
    const { code, task, moves } = await block(address(own), 'none', LEASE)
    expect(code).toBe('written')
    expect(moves).toEqual(['submit', 'claim', 'complete'])
    expect(task.attempts).toBe(1)
  })

  test.concurrent('keeps it because of the thread: without it the lease is lost', { timeout: 120_000 }, async (own) => {
    const { code, moves } = await block(address(own), 'no-keeper', LEASE)
    expect(code).toBe('STALE_LEASE')
    expect(moves).toContain('lose-lease')
  })
})
