/** Every statement of the source designs is cited by a test, or stands here with a reason why not. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const root = join(import.meta.dirname, '..')

/** Not to be shown by a test that runs without a server: each with its reason. */
const EXCEPTIONS: Readonly<Record<string, string>> = {
  AA4: 'principles, judged by reading',
  E07: 'advice to users: docs',
  E11: 'what is left to the handler: docs',
  H13: 'a pointer to another document of the source',
  I15: 'a position for the docs',
}

const ids = readFileSync(join(import.meta.dirname, 'checklist-ids.txt'), 'utf8')
  .trim()
  .split('\n')
  .map((line) => line.split(' ')[0]!)

const filesUnder = (folder: string): string[] =>
  readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts') && entry.name !== 'checklist.test.ts')
    .map((entry) => join(entry.parentPath, entry.name))

const cited = new Set<string>()
for (const file of [...filesUnder('test'), ...filesUnder('src/testing')]) {
  for (const [, id] of readFileSync(file, 'utf8').matchAll(/\[([A-Z]{1,2}\d{1,2}[a-z]?)\]/g)) cited.add(id!)
}

test('every statement is cited by a test, or excused with a reason', () => {
  expect(ids.filter((id) => !cited.has(id) && !Object.hasOwn(EXCEPTIONS, id))).toEqual([])
})

test('no excuse is left over, and none is for an id that does not exist', () => {
  expect(Object.keys(EXCEPTIONS).filter((id) => cited.has(id) || !ids.includes(id))).toEqual([])
})

test('each id stands once', () => {
  expect(ids.filter((id, i) => ids.indexOf(id) !== i)).toEqual([])
})
