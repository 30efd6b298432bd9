/** A server that accepts reads only, as a standby does after a failover: results wait until they can be written. */
import { expect, test } from 'vitest'
import { connect, isHoldfastError, silentLogger } from '../../src/index.ts'
import { until } from '../crash/processes.ts'
import { runSql } from '../servers/schemas.ts'
import { freshDatabase, onPostgres } from './setup.ts'

const LEASE = 2_000
const TASKS = 20

onPostgres('while the server is read-only for longer than a lease', (url) => {
  test('no result is lost, and no task is taken from its worker', async (context) => {
    const database = await freshDatabase(url)
    const name = new URL(database).pathname.slice(1)
    const client = await connect(database, { create: true, logger: silentLogger })
    const other = await connect(database, { logger: silentLogger, name: 'other' })
    context.onTestFinished(async () => void (await Promise.all([client.close(), other.close()])))
    /** New connections get it: those that are there are ended, as a failover does. */
    const readOnly = (value: 'on' | 'off') =>
      runSql(
        url,
        `alter database ${name} set default_transaction_read_only = ${value}`,
        `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}'`,
      )
    let started = 0
    let finish = (): void => {}
    const finished = new Promise<void>((done) => {
      finish = done
    })
    client
      .worker({ concurrency: TASKS, leaseTtl: `${LEASE}ms` })
      .handle('work', async () => {
        started++
        await finished
        return 'result'
      })
      .start()
    other
      .worker({ leaseTtl: `${LEASE}ms` })
      .handle('nothing', () => {})
      .start()
    await client.submitMany(
      Array.from({ length: TASKS }, () => ({ type: 'work', input: null })),
      { maxRetries: 0 },
    )
    await until('all have started', () => started === TASKS)
    await readOnly('on')
    const isReadOnly = async (): Promise<boolean> =>
      other.submit('other', null).then(
        () => false,
        (error: unknown) => isHoldfastError(error, 'STORE_READ_ONLY'),
      )
    await until('writes are refused', isReadOnly)
    finish()
    const begun = performance.now()
    await until('the leases have lapsed', () => performance.now() - begun > 2 * LEASE)
    await readOnly('off')
    const counted = async (status: string) => (await other.count({ type: 'work', status })).count
    await until('all have ended', async () => (await counted('running').catch(() => TASKS)) === 0)
    expect({ completed: await counted('completed'), failed: await counted('failed') }).toEqual({
      completed: TASKS,
      failed: 0,
    })
  })
})
