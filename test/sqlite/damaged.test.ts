/** A file that is not a database: the error brings the advice of SQLite, which core does not know. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { CODES } from '../../src/core/errors.ts'
import { connect } from '../../src/index.ts'

test('a file that is not a database is refused with the way to recover it', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const path = join(folder, 'holdfast.db')
  writeFileSync(path, 'not a database '.repeat(1_000))
  await expect(connect(`sqlite:${path}`)).rejects.toMatchObject({
    code: 'STORE_CORRUPT',
    fix: expect.stringContaining('sqlite3 FILE .recover'),
  })
  expect(CODES.STORE_CORRUPT.fix).not.toContain('sqlite')
})
