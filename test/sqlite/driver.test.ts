/** Node 22 calls node:sqlite experimental on standard error. Users took it for a fault of theirs. */
import { execFile } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import * as sqlite from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, onTestFinished, test, vi } from 'vitest'
import { loadSqlite } from '../../src/store/sqlite/file/driver.ts'
import { cleanUp, folder } from '../crash/processes.ts'

cleanUp()

const root = fileURLToPath(new URL('../..', import.meta.url))

test('the warning of Node 22 about node:sqlite is left out, and every other warning is passed on', () => {
  const emitWarning = vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
  onTestFinished(() => emitWarning.mockRestore())
  const loaded = loadSqlite(() => {
    process.emitWarning('SQLite is an experimental feature and might change at any time', 'ExperimentalWarning')
    process.emitWarning('Type Stripping is an experimental feature', 'ExperimentalWarning')
    process.emitWarning(new Error('a warning of the user'))
    return sqlite
  })
  expect(loaded).toBe(sqlite)
  expect(emitWarning.mock.calls).toEqual([
    ['Type Stripping is an experimental feature', 'ExperimentalWarning'],
    [new Error('a warning of the user')],
  ])
  process.emitWarning('SQLite is an experimental feature and might change at any time', 'ExperimentalWarning')
  expect(emitWarning).toHaveBeenCalledTimes(3)
})

test('no module imports node:sqlite by a statement, which would load it, and warn, at once', () => {
  const imports = /^import (?!type ).*from 'node:sqlite'/m
  const named = globSync('src/**/*.ts', { cwd: root }).filter((path) =>
    imports.test(readFileSync(`${root}/${path}`, 'utf8')),
  )
  expect(imports.test("import { DatabaseSync } from 'node:sqlite'")).toBe(true)
  expect(named).toEqual([])
})

/** The path of a Node 22: `npm install --prefix somewhere node@22`. */
const node22 = process.env['HOLDFAST_TEST_NODE22']

test.skipIf(node22 === undefined)('on Node 22 a program and the command line print no warning', async () => {
  const run = promisify(execFile)
  const cwd = folder()
  const program = `
    import { connect } from ${JSON.stringify(`${root}/dist/index.js`)}
    const client = await connect('sqlite:./q.db')
    await client.submit('work', null)
    await client.worker().handle('work', () => {}).drain()
    await client.examine()
    await client.close()`
  const { stderr } = await run(node22!, ['--input-type=module', '-e', program], { cwd })
  expect(stderr).toMatch(/^holdfast info: created a store at .*\n$/)
  const doctor = await run(node22!, [`${root}/bin/holdfast.js`, 'doctor', '--url', 'sqlite:./q.db'], { cwd })
  expect(doctor.stderr).toBe('')
})
