/** The way of a task through the files is as short as docs/internals.md says. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const root = join(import.meta.dirname, '..')
const page = readFileSync(join(root, 'docs/internals.md'), 'utf8')

/** The files of the second column of a table in docs/internals.md, by step. Alternatives are separated by `or`. */
const walkOf = (heading: string): { readonly step: string; readonly files: readonly string[] }[] => {
  const section = page.split(`## ${heading}\n`)[1]!.split('\n## ')[0]!
  return [...section.matchAll(/^\| (\d*) ?\| (.*?) \|/gm)].map(([, step, cell]) => ({
    step: step!,
    files: [...cell!.matchAll(/`([^`]+\.ts)`/g)].map(([, file]) => file!),
  }))
}

test('docs/internals.md names files that exist, each one once: a task never goes back', () => {
  const steps = [...walkOf('On SQLite and PostgreSQL'), ...walkOf('On S3 and NATS')]
  const files = steps.flatMap((step) => step.files)
  expect(files.filter((file) => !existsSync(join(root, 'src', file)))).toEqual([])
  expect(files.filter((file, i) => files.indexOf(file) !== i)).toEqual([])
})

test('a task passes at most 16 files on SQLite and PostgreSQL, and at most 24 on S3', () => {
  const isOf = (store: string) => (file: string) => !file.startsWith('store/') || file.startsWith(`store/${store}/`)
  const sql = walkOf('On SQLite and PostgreSQL')
  const own = new Set(['4', '5', '6', '9', '16'])
  const s3 = [...sql.filter(({ step }) => !own.has(step)), ...walkOf('On S3 and NATS')].flatMap(
    ({ files }) => files[0]!,
  )
  for (const store of ['sqlite', 'postgres']) {
    const files = sql.flatMap((step) => step.files).filter(isOf(store))
    expect(files.length, store).toBeLessThanOrEqual(16)
  }
  expect(s3.length).toBeLessThanOrEqual(24)
})
