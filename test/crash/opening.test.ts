/** Many processes open one new file, and processes die while they open one: there is one store in the end. */
import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, test } from 'vitest'
import { connect, silentLogger } from '../../src/index.ts'
import { cleanUp, folder, pause, start, until } from './processes.ts'
import { report, seededChance } from './seed.ts'

cleanUp()

const one = (db: DatabaseSync, sql: string): unknown => Object.values(db.prepare(sql).get() ?? {})[0]

const openTogether = async (file: string): Promise<void> => {
  const openers = Array.from({ length: 10 }, () => start('opener', { file, barrier: true }))
  await Promise.all(openers.map((opener) => opener.heard('ready')))
  for (const opener of openers) opener.signal('SIGUSR2')
  const opened = await Promise.all(openers.map((opener) => opener.heard('opened')))
  const ids = await Promise.all(openers.map(async (opener) => (await opener.heard('done'))['id']))
  await Promise.all(openers.map((opener) => opener.end()))
  expect(opened.filter(({ created }) => created).length).toBe(1)
  const db = new DatabaseSync(file)
  expect(one(db, 'select count(*) from holdfast_task')).toBe(ids.length)
  expect(one(db, `select count(*) from holdfast_meta where name = 'identity'`)).toBe(1)
  expect(one(db, 'pragma integrity_check')).toBe('ok')
  db.close()
}

test('ten processes that open one new file at once make one store', async () => {
  const place = folder()
  // A lock met at the wrong moment shows in about every second round.
  for (let round = 0; round < 6; round += 1) await openTogether(join(place, `${round}.db`))
})

test('a process killed while it opens a new file leaves one that opens', async () => {
  const { between } = seededChance('opening')
  const place = folder()
  const left: Record<string, number> = {}
  const once = async (file: string): Promise<void> => {
    const victim = start('opener', { file })
    await until('the file is there', () => existsSync(file), 30_000, 1)
    await pause(between(0, 10))
    await victim.kill()
    const state = victim.said('opened').length > 0 ? 'open' : `${statSync(file).size} bytes`
    left[state] = (left[state] ?? 0) + 1

    const client = await connect(`sqlite:${file}`, { logger: silentLogger })
    const { id } = await client.submit('work', null)
    await client.close()
    const db = new DatabaseSync(file)
    expect(one(db, 'pragma integrity_check')).toBe('ok')
    expect(one(db, `select count(*) from holdfast_meta where name = 'identity'`)).toBe(1)
    expect(db.prepare('select 1 from holdfast_task where id = ?').get(id)).toBeDefined()
    db.close()
  }
  for (let i = 0; i < 20; i += 2) await Promise.all([once(join(place, `${i}.db`)), once(join(place, `${i + 1}.db`))])
  report(`opening: killed in 20 states: ${JSON.stringify(left)}`)
})
