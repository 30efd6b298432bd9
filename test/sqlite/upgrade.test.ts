/** A file of the version before, with tasks in it, becomes one of this version. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, onTestFinished, test } from 'vitest'
import { connect, silentLogger } from '../../src/index.ts'

/** As version 1 left it: what version 2 made is taken away again. */
const older = async (): Promise<{ path: string; id: string }> => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-upgrade-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const path = join(folder, 'tasks.db')
  const client = await connect(`sqlite:${path}`, { logger: silentLogger })
  const { id } = await client.submit('work', { n: 1 }, { idempotencyKey: 'k', tags: { of: 'before' } })
  await client.close()
  change(path, 'drop index holdfast_task_moved', `update holdfast_meta set value = '1' where name = 'schema_version'`)
  return { path, id }
}

const change = (path: string, ...statements: string[]): void => {
  const db = new DatabaseSync(path)
  for (const statement of statements) db.exec(statement)
  db.close()
}

const facts = (path: string): unknown => {
  const db = new DatabaseSync(path)
  const version = db.prepare(`select value from holdfast_meta where name = 'schema_version'`).get()!['value']
  const index = db.prepare(`select count(*) as n from sqlite_schema where name = 'holdfast_task_moved'`).get()!['n']
  db.close()
  return { version, index }
}

test('a file of an earlier version is brought up to date by several at once, and every task lives on', async () => {
  const { path, id } = await older()
  const clients = await Promise.all(
    Array.from({ length: 4 }, () => connect(`sqlite:${path}`, { logger: silentLogger })),
  )
  expect(facts(path)).toEqual({ version: '2', index: 1 })
  await clients[0]!
    .worker()
    .handle('work', () => 'done')
    .drain()
  expect(await clients[1]!.get(id)).toMatchObject({ status: 'completed', output: 'done', tags: { of: 'before' } })
  expect(await clients[2]!.submit('work', { n: 1 }, { idempotencyKey: 'k' })).toMatchObject({ id, deduplicated: true })
  for (const client of clients) await client.close()
})

test('a file stays as it was when bringing it up to date fails half-way', async () => {
  const { path } = await older()
  change(path, 'create table holdfast_task_moved (n)')
  await expect(connect(`sqlite:${path}`, { logger: silentLogger })).rejects.toThrow(/holdfast_task_moved/)
  expect(facts(path)).toMatchObject({ version: '1' })
  change(path, 'drop table holdfast_task_moved')
  await (await connect(`sqlite:${path}`, { logger: silentLogger })).close()
  expect(facts(path)).toEqual({ version: '2', index: 1 })
})
