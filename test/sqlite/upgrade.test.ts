/** A file made by an earlier release is brought up to date when it is opened, with everything that is in it. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, onTestFinished, test } from 'vitest'
import { connect, silentLogger } from '../../src/index.ts'

test('version 1, which could not find what has changed lately, is upgraded and keeps its tasks', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-upgrade-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const path = join(folder, 'a.db')
  const before = await connect(`sqlite:${path}`, { logger: silentLogger })
  const { id } = await before.submit('mail', 1)
  await before.close()
  const db = new DatabaseSync(path)
  db.exec(`drop index holdfast_task_moved; update holdfast_meta set value = '1' where name = 'schema_version'`)
  db.close()
  const after = await connect(`sqlite:${path}`, { logger: silentLogger, create: false })
  onTestFinished(() => after.close())
  expect((await after.get(id)).status).toBe('pending')
  await after.cancel(id)
  const changes = after.changes({ since: '2026-01-01T00:00:00Z' })
  const told = [(await changes.next()).value, (await changes.next()).value]
  expect(told.map((change) => change?.entry.move)).toEqual(['submit', 'cancel'])
  await changes.return()
  expect((await after.examine()).find(({ check }) => check === 'schema')).toMatchObject({ verdict: 'ok' })
})
