/** Rows of a handler and the end of its task, in one transaction, while processes are killed at any point. */

import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, test } from 'vitest'
import { volume } from '../volume.ts'
import { type JoinedCampaign, joinedCampaign, patienceFor } from './joined-campaign.ts'
import { cleanUp, folder } from './processes.ts'
import { report, seededChance } from './seed.ts'

cleanUp()

const TASKS = volume(100, 1_000)

const onSqlite = (name: string): Pick<JoinedCampaign, 'address' | 'query'> => {
  const path = join(folder(), `${name}.db`)
  return {
    address: `sqlite:${path}`,
    async query(sql) {
      using db = new DatabaseSync(path, { timeout: 20_000 })
      return db.prepare(sql).all()
    },
  }
}

test('on SQLite both are there or neither is, and no step is done twice', { timeout: patienceFor(TASKS) }, async () => {
  const { seed } = seededChance('joined')
  const { violations, ...counts } = await joinedCampaign({ ...onSqlite('joined'), tasks: TASKS, seed, deaths: 10 })
  report(`joined: ${JSON.stringify(counts)}`)
  expect(violations).toEqual([])
  expect(counts.kills).toBeGreaterThan(0)
})

test('on SQLite rows that are committed before the end of the task are noticed', async () => {
  const { seed } = seededChance('joined planted')
  const ground = onSqlite('planted')
  const { violations } = await joinedCampaign({ ...ground, tasks: 60, seed, deaths: 30, isPlanted: true })
  expect(violations.length).toBeGreaterThan(0)
})
