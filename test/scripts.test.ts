/** What the scripts of this repository promise. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { relativeLinks, withoutDeadLinks } from '../scripts/links.ts'
import { snippetsOf } from '../scripts/markdown.ts'
import { lineOf, runAll } from '../scripts/run-all.ts'
import { withShortLines } from '../scripts/short-lines.ts'

const root = join(import.meta.dirname, '..')

test('a step that fails does not keep the next ones from being run, and is named', () => {
  const step = (name: string, code: string) => ({ name, command: process.execPath, args: ['-e', code] })
  const ended = runAll([step('a', 'process.exit(1)'), step('b', ''), step('c', 'throw 1')], 'ignore')
  expect(ended.map(({ name, passed }) => [name, passed])).toEqual([
    ['a', false],
    ['b', true],
    ['c', false],
  ])
  expect(JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).scripts.test).toBe('node scripts/test.ts')
})

test('a test that passes only when it is run again is counted and shown with its first error', ({ onTestFinished }) => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-repeated-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const body = `let runs = 0
describe('a thing', () => test('works', () => { if (++runs === 1) throw new Error('not ' + 'at first') }))
test('another', () => {})`
  writeFileSync(join(folder, 'repeated.test.js'), body)
  const output = join(folder, 'output.txt')
  const [vitest, reporter] = ['node_modules/vitest/vitest.mjs', 'scripts/repeated-tests.ts'].map((path) =>
    join(root, path),
  )
  const words = [process.execPath, vitest, 'run', '--root', folder, '--globals', '--retry=1', `--reporter=${reporter}`]
  const command = `'${words.join("' '")}' > '${output}'`

  const [ended] = runAll([{ name: 'repeated', command: 'sh', args: ['-c', command] }], 'ignore')
  expect(lineOf(ended!)).toMatch(/^ok {4}repeated +\d+ s, 1 repeated$/)
  const shown = readFileSync(output, 'utf8')
  expect(shown).toContain('REPEATED  repeated.test.js > a thing > works\n    Error: not at first\n')
  expect(shown).toMatch(/ at .*repeated\.test\.js:2:\d+/)
  expect(lineOf({ name: 'b', passed: false, seconds: 1, repeated: 0 })).toMatch(/^FAIL {2}b +1 s$/)
})

test("the README's first snippet is marked as runnable, and needs only what its install line installs", () => {
  const readme = readFileSync(join(root, 'README.md'), 'utf8')
  expect(readme.indexOf('```ts run')).toBe(readme.indexOf('```ts'))
  const [first] = snippetsOf(readme)
  expect(first!.match(/^import .*$/gm)).toEqual(["import { connect, defineTask } from 'holdfast'"])
})

test('a link to a file that is not in the package leads to the repository, or is plain text', () => {
  const page =
    '![A task](docs/images/a.png) [The log](CHANGELOG.md#b), [`a[0]`](docs/a.md), [here](#here), [there](https://example.com)'
  const isHere = (path: string): boolean => path === 'CHANGELOG.md'
  expect(withoutDeadLinks(page, isHere, null)).toBe(
    '(A task) [The log](CHANGELOG.md#b), `a[0]`, [here](#here), [there](https://example.com)',
  )
  expect(withoutDeadLinks(page, isHere, 'https://example.com/holdfast/blob/v1/')).toBe(
    '![A task](https://example.com/holdfast/raw/v1/docs/images/a.png) [The log](CHANGELOG.md#b), [`a[0]`](https://example.com/holdfast/blob/v1/docs/a.md), [here](#here), [there](https://example.com)',
  )
  expect(relativeLinks(page)).toEqual(['docs/images/a.png', 'CHANGELOG.md', 'docs/a.md'])
})

test('lines of minified code are broken before statements, and its source map with them', async () => {
  const code = 'const a=()=>{b();return`;\n;`};class C{#x=1;m(){}}'
  // Columns 0, 13, 17 and 18 of the first line, and 3 of the second.
  const { code: broken, mappings } = await withShortLines('a.js', code, 'AAAA,aAAA,IAAI,CAAC;GAAA')
  expect(broken).toBe('const a=()=>{\nb();\nreturn`;\n;`};\nclass C{\n#x=1;\nm(){}}')
  expect(mappings).toBe('AAAA;AAAA;AAAI,CAAC;GAAA;;;')
})
