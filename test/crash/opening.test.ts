/** Many processes open one new file, and processes die while they open one: there is one store in the end. */
import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, test } from 'vitest'
import { cleanUp, folder, pause, start, until } from './processes.ts'
import { report, seededChance } from './seed.ts'

cleanUp()

const one = (db: DatabaseSync, sql: string): unknown => Object.values(db.prepare(sql).get() ?? {})[0]

test('ten processes that open one new file at once make one store', async () => {
  const file = join(folder(), 'new.db')
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
})

test('a process killed while it opens a new file leaves one that opens', async () => {
  const { between } = seededChance('opening')
  const place = folder()
  const left: Record<string, number> = {}
  for (let i = 0; i < 20; i++) {
    const file = join(place, `${i}.db`)
    const victim = start('opener', { file })
    await victim.heard('opening')
    await until('the file is there', () => existsSync(file), 30_000, 1)
    await pause(between(0, 10))
    await victim.kill()
    const state =
      victim.said('opened').length > 0 ? 'open' : existsSync(file) ? `${statSync(file).size} bytes` : 'no file'
    left[state] = (left[state] ?? 0) + 1

    const next = start('opener', { file })
    const { id } = await next.heard('done')
    await next.end()
    const db = new DatabaseSync(file)
    expect(one(db, 'pragma integrity_check')).toBe('ok')
    expect(one(db, `select count(*) from holdfast_meta where name = 'identity'`)).toBe(1)
    expect(db.prepare('select 1 from holdfast_task where id = ?').get(id as string)).toBeDefined()
    db.close()
  }
  report(`opening: killed in 20 states: ${JSON.stringify(left)}`)
})
