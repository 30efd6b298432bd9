/** Rows of a handler and the end of its task, in one transaction, while processes are killed and replies to commits are lost. */
import { expect, test } from 'vitest'
import { connect, silentLogger } from '../../src/index.ts'
import { joinedCampaign, patienceFor } from '../crash/joined-campaign.ts'
import { cleanUp } from '../crash/processes.ts'
import { report, seededChance } from '../crash/seed.ts'
import { runSql } from '../servers/schemas.ts'
import { volume } from '../volume.ts'
import { freshDatabase, onPostgres } from './setup.ts'

cleanUp()

const TASKS = volume(100, 1_000)

onPostgres('handlers that end their tasks in their own transactions', (server) => {
  test('leave both or neither, and do no step twice', { timeout: 2 * patienceFor(TASKS) }, async () => {
    const address = await freshDatabase(server)
    await (await connect(address, { create: true, logger: silentLogger })).close()
    const { seed } = seededChance('joined on postgres')
    const query = (sql: string) => runSql(address, sql)
    const { violations, ...counts } = await joinedCampaign({ address, query, tasks: TASKS, seed, deaths: 15 })
    report(`joined on postgres: ${JSON.stringify(counts)}`)
    expect(violations).toEqual([])
    expect(counts.kills).toBeGreaterThan(0)
  })
})
