/** Heartbeats come from a thread with a connection of its own: neither a busy event loop nor a busy pool loses leases. */
import { Pool } from 'pg'
import { expect, onTestFinished, test } from 'vitest'
import { block } from '../crash/blocking.ts'
import { cleanUp, until } from '../crash/processes.ts'
import { begin, freshDatabase, onPostgres } from './setup.ts'

cleanUp()

/** Long enough for a thread to start on a busy machine. */
const LEASE = 1_500

onPostgres('a handler that computes for three lease lengths without yielding', (url) => {
  test('keeps its lease while another worker looks', async () => {
    const { code, task, moves } = await block(await freshDatabase(url), 'none', LEASE)
    expect(code).toBe('written')
    expect(moves).toEqual(['submit', 'claim', 'complete'])
    expect(task.attempts).toBe(1)
  })

  test.each(['no-keeper', 'idle-keeper'] as const)(
    'keeps it because of the thread: with the bug %s the lease is lost',
    async (plant) => {
      const { code, task, moves } = await block(await freshDatabase(url), plant, LEASE)
      expect(code).toBe('STALE_LEASE')
      expect(moves).toContain('lose-lease')
      expect(task.attempts).toBe(2)
    },
  )
})

onPostgres('a pool whose connections are all taken', (url) => {
  /** The task while its worker's pool is taken, for three lease lengths. */
  const busy = async (password?: () => string): Promise<string[]> => {
    const pool = new Pool({ connectionString: url, max: 1, ...(password === undefined ? null : { password }) })
    onTestFinished(() => pool.end())
    const { connect } = begin(url)
    const client = await connect({ postgres: { pool } })
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

  test('does not cost a lease', async () => {
    expect(await busy()).not.toContain('lose-lease')
  })

  test('would, if heartbeats had to wait for it: a password that is a function cannot be sent to a thread', async () => {
    expect(await busy(() => 'none')).toContain('lose-lease')
  })
})
