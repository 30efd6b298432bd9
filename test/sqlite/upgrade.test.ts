/** A file of an earlier schema, as the code of that time wrote it, is upgraded when it is opened, with everything in it. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, onTestFinished, test } from 'vitest'
import { connect, silentLogger } from '../../src/index.ts'
import { SCHEMA_VERSION } from '../../src/store/sqlite/schema.ts'
import { expectFixture } from '../fixture.ts'

const begin = (): string => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-upgrade-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** A file with what a dump of that version holds. */
const restored = (version: number): string => {
  const path = join(begin(), 'old.db')
  const db = new DatabaseSync(path)
  db.exec(readFileSync(new URL(`./fixtures/schema-${version}.sql`, import.meta.url), 'utf8'))
  db.close()
  return path
}

const open = (path: string, create: boolean) => connect(`sqlite:${path}`, { logger: silentLogger, create })

/** Every table and index, in the words in which it was made. */
const schemaOf = (path: string): readonly unknown[] => {
  const db = new DatabaseSync(path)
  const objects = db.prepare(`select name, sql from sqlite_schema where name like 'holdfast%' order by name`).all()
  db.close()
  return objects.map(({ name, sql }) => [name, sql])
}

const versions = Array.from({ length: SCHEMA_VERSION - 1 }, (_, n) => n + 1)

describe.each(versions)('a store of schema version %i', (version) => {
  test('keeps its tasks, keys, pauses and schedules, and goes on working', async () => {
    const client = await open(restored(version), false)
    onTestFinished(() => client.close())
    await expectFixture(client)
    expect((await client.examine()).find(({ check }) => check === 'schema')).toMatchObject({ verdict: 'ok' })
  })

  test('has the same tables and indexes afterwards as a new store', async () => {
    const path = restored(version)
    await (await open(path, false)).close()
    const fresh = join(begin(), 'new.db')
    await (await open(fresh, true)).close()
    expect(schemaOf(path)).toEqual(schemaOf(fresh))
  })
})
