/** The table of planted bugs follows the source: `npm run mutants` runs the tests against each of them. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { planted } from './mutant.ts'
import { MUTANTS } from './table.ts'

const root = join(import.meta.dirname, '../..')

it.each(MUTANTS)('the bug in $file, $breaks, can still be planted', (mutant) => {
  const source = readFileSync(join(root, 'src', mutant.file), 'utf8')
  expect(planted(source, mutant)).not.toBe(source)
  for (const test of mutant.tests) expect(existsSync(join(root, 'test', test)), test).toBe(true)
})

it('there are at least forty', () => {
  expect(MUTANTS.length).toBeGreaterThanOrEqual(40)
})
