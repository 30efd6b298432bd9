/** Every code block of docs/testing.md is a part of a file that runs. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const root = join(import.meta.dirname, '..', '..')
const DOORS: Readonly<Record<string, string>> = {
  '../../src/index.ts': 'holdfast',
  '../../src/testing/index.ts': 'holdfast/testing',
}

/** As a user would import it. */
const throughDoors = (text: string): string =>
  Object.entries(DOORS).reduce((seen, [path, door]) => seen.replaceAll(`'${path}'`, `'${door}'`), text)

test('every block says where it is from, and stands there word for word', async () => {
  const page = await readFile(join(root, 'docs/testing.md'), 'utf8')
  const blocks = [...page.matchAll(/<!-- from (\S+) -->\n```ts\n([\s\S]*?)```/g)]
  expect(blocks.length).toBe(page.split('```ts').length - 1)
  for (const [, file, block] of blocks)
    expect(throughDoors(await readFile(join(root, file!), 'utf8')), file).toContain(block!.trim())
})
