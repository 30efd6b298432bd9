/** Heartbeats come from a thread with a connection of its own: neither a busy event loop nor a busy pool loses leases. Side by side: nearly all of it is waiting. */
import { Socket } from 'node:net'
import { Pool, type PoolConfig } from 'pg'
import { afterAll, expect, type TestContext, test } from 'vitest'
import { blockBatch } from '../crash/batch.ts'
import { block } from '../crash/blocking.ts'
import { computeBehindClaim } from '../crash/busy-claim.ts'
import { cleanUp, until } from '../crash/processes.ts'
import { begin, freshDatabase, onPostgres } from './setup.ts'

cleanUp(afterAll)

/** Long enough for a thread to start on a busy machine. It costs little: the tests run side by side. */
const LEASE = 3_000

onPostgres('a handler that computes for three lease lengths without yielding', (url) => {
  test.concurrent('keeps its lease while another worker looks', async (own) => {
    const { code, task, moves } = await block(await freshDatabase(url, own), 'none', LEASE)
    expect(code).toBe('written')
    expect(moves).toEqual(['submit', 'claim', 'complete'])
    expect(task.attempts).toBe(1)
  })

  test.concurrent('keeps its lease also when the program is text on the command line, whose options Node hands on to threads', async (own) => {
    const { code, moves } = await block(await freshDatabase(url, own), 'none', LEASE, { asText: true })
    expect(code).toBe('written')
    expect(moves).toEqual(['submit', 'claim', 'complete'])
  })

  test.concurrent.for(['no-keeper', 'idle-keeper'] as const)(
    'keeps it because of the thread: with the bug %s the lease is lost',
    async (plant, own) => {
      const { code, task, moves } = await block(await freshDatabase(url, own), plant, LEASE)
      expect(code).toBe('STALE_LEASE')
      expect(moves).toContain('lose-lease')
      expect(task.attempts).toBe(2)
    },
  )
})

onPostgres('a process that computes while the reply to its claim waits', (url) => {
  test.concurrent('loses none of the tasks: with a lease of 5 s and 7 s of computing none fails', async (own) => {
    const database = await freshDatabase(url, own)
    const { completed, retries, moves } = await computeBehindClaim(database, { lease: 5_000, computes: 7_000 })
    expect({ completed, retries }).toEqual({ completed: 5, retries: 0 })
    expect(moves).not.toContain('lose-lease')
  })

  test.concurrent("keeps them because the thread looks after the claim: with the bug 'keeps-no-claims' they are lost", async (own) => {
    const bug = { lease: 2_000, computes: 4_500, plant: 'keeps-no-claims' } as const
    const { failed } = await computeBehindClaim(await freshDatabase(url, own), bug)
    expect(failed).toBe(5)
  })
})

onPostgres('the second task of a batch, behind a handler that blocks', (url) => {
  test.concurrent('does not begin after another worker has run it', async (own) => {
    const { fences, task } = await blockBatch(await freshDatabase(url, own), 'none', LEASE)
    expect(fences).toEqual([2])
    expect(task).toMatchObject({ status: 'completed', attempts: 2, retryCount: 0 })
  })
})

onPostgres('a pool whose connections are all taken', (url) => {
  /** The task while its worker's pool is taken, for three lease lengths. */
  const busy = async (
    own: Pick<TestContext, 'onTestFinished'>,
    settings: PoolConfig = {},
    onWarning: (message: string) => void = () => {},
  ): Promise<string[]> => {
    const pool = new Pool({ connectionString: url, max: 1, ...settings })
    own.onTestFinished(() => pool.end())
    const { connect } = begin(url, own)
    const client = await connect({ postgres: { pool, onWarning } })
    const other = await connect()
    const { id } = await client.submit('work', null, { maxRetries: null })
    let finish = (): void => {}
    const finished = new Promise<void>((done) => {
      finish = done
    })
    let started = (): void => {}
    const isUnderWay = new Promise<void>((done) => {
      started = done
    })
    client
      .worker({ leaseTtl: `${LEASE}ms` })
      .handle('work', () => {
        started()
        return finished
      })
      .start()
    await isUnderWay
    const taken = await pool.connect()
    let looks = 0
    const begun = performance.now()
    await until('three lease lengths have passed', async () => {
      looks++
      await other.claimNext({ workerId: 'other' })
      return performance.now() - begun > 3 * LEASE
    })
    taken.release()
    finish()
    expect(looks).toBeGreaterThan(10)
    return (await other.get(id)).history.map(({ move }) => move)
  }

  test.concurrent('does not cost a lease', async (own) => {
    expect(await busy(own)).not.toContain('lose-lease')
  })

  test.concurrent('does not, either, with a password that is a function: the thread asks for it', async (own) => {
    expect(await busy(own, { password: () => 'none' })).not.toContain('lose-lease')
  })

  test.concurrent('would, if heartbeats had to wait for it: settings with functions cannot be sent to a thread, and a warning says so', async (own) => {
    const warnings: string[] = []
    const stream = (): Socket => new Socket()
    expect(await busy(own, { stream }, (message) => warnings.push(message))).toContain('lose-lease')
    expect(warnings).toContainEqual(
      expect.stringMatching(/leases are renewed on the event loop, so .* can lose its lease/),
    )
  })
})
