/** The files of the dashboard, as they are in the package. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterEach, expect, test } from 'vitest'
import { readPages, servePage } from '../../src/http/pages.ts'

const folder = mkdtempSync(join(tmpdir(), 'holdfast-pages-'))
afterEach(() => rmSync(folder, { recursive: true }))

test('a file that the package has compressed is served under its own name, plain and compressed', async () => {
  const code = 'export const a = 1\n'.repeat(100)
  mkdirSync(join(folder, 'assets'))
  writeFileSync(join(folder, 'index.html'), '<title>Holdfast</title>')
  writeFileSync(join(folder, 'assets/index-1.js.gz'), gzipSync(code))
  const pages = readPages(folder)!
  const ask = (path: string, accept: string): Response | null =>
    servePage(pages, new Request(`http://localhost${path}`, { headers: { 'accept-encoding': accept } }), '')

  const plain = ask('/assets/index-1.js', 'identity')!
  expect(await plain.text()).toBe(code)
  expect(plain.headers.get('content-type')).toBe('text/javascript; charset=utf-8')
  expect(plain.headers.get('content-encoding')).toBeNull()
  const zipped = ask('/assets/index-1.js', 'gzip')!
  expect(Buffer.from(await zipped.arrayBuffer())).toEqual(gzipSync(code))
  expect(zipped.headers.get('content-encoding')).toBe('gzip')
  expect(zipped.headers.get('etag')).toBe(plain.headers.get('etag'))
  expect(ask('/assets/index-1.js.gz', 'gzip')).toBeNull()
})
