/** Heartbeats come from a thread with a client of its own: a busy event loop does not lose leases. */
import { afterAll, expect, test } from 'vitest'
import { block } from '../../crash/blocking.ts'
import { cleanUp } from '../../crash/processes.ts'
import { addressOf, freshPrefix } from '../setup.ts'
import { onS3 } from './setup.ts'

cleanUp(afterAll)

/** Long enough for a thread to load the SDK on a busy machine. */
const LEASE = 6_000

onS3('a handler that computes for three lease lengths without yielding', (target) => {
  test.concurrent('keeps its lease while another worker looks', { timeout: 120_000 }, async () => {
    const { code, task, moves } = await block(addressOf(target, freshPrefix()), 'none', LEASE)
    expect(code).toBe('written')
    expect(moves).toEqual(['submit', 'claim', 'complete'])
    expect(task.attempts).toBe(1)
  })

  test.concurrent('keeps it because of the thread: without it the lease is lost', { timeout: 120_000 }, async () => {
    const { code, moves } = await block(addressOf(target, freshPrefix()), 'no-keeper', LEASE)
    expect(code).toBe('STALE_LEASE')
    expect(moves).toContain('lose-lease')
  })
})
