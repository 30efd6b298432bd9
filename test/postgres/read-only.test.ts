/** A server that accepts reads only, as a standby does after a failover. */
import { test } from 'vitest'
import { connect, silentLogger } from '../../src/index.ts'
import { keepsResultsWhileReadOnly } from '../read-only-scene.ts'
import { runSql } from '../servers/schemas.ts'
import { freshDatabase, onPostgres } from './setup.ts'

onPostgres('while the server is read-only for longer than a lease', (url) => {
  test('no result is lost, and no task is taken from its worker', async (context) => {
    const database = await freshDatabase(url)
    const name = new URL(database).pathname.slice(1)
    const client = await connect(database, { create: true, logger: silentLogger })
    const other = await connect(database, { logger: silentLogger, name: 'other' })
    context.onTestFinished(async () => void (await Promise.all([client.close(), other.close()])))
    /** New connections get it: those that are there are ended, as a failover does. */
    const readOnly = async (is: boolean): Promise<void> => {
      await runSql(
        url,
        `alter database ${name} set default_transaction_read_only = ${is ? 'on' : 'off'}`,
        `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}'`,
      )
    }
    await keepsResultsWhileReadOnly({ client, other, lease: 2_000, readOnly })
  })
})
