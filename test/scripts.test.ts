/** What the scripts of this repository promise. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { runAll } from '../scripts/run-all.ts'
import { snippetsOf } from '../scripts/snippets.ts'

const root = join(import.meta.dirname, '..')

test('a step that fails does not keep the next ones from being run, and is named', () => {
  const step = (name: string, code: string) => ({ name, command: process.execPath, args: ['-e', code] })
  expect(runAll([step('a', 'process.exit(1)'), step('b', ''), step('c', 'throw 1')], 'ignore')).toEqual(['a', 'c'])
  expect(JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).scripts.test).toBe('node scripts/test.ts')
})

test("the README's first snippet is marked as runnable, and imports all that it uses", () => {
  const readme = readFileSync(join(root, 'README.md'), 'utf8')
  expect(readme.indexOf('```ts run')).toBe(readme.indexOf('```ts'))
  const [first] = snippetsOf(readme)
  for (const name of ['connect', 'defineTask', 'PermanentError', 'RescheduleError', 'z'])
    expect(first).toMatch(new RegExp(`import .*\\b${name}\\b.* from`))
})
