/** What is shipped: small, whole, and nothing inline. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { expect, inject, test } from 'vitest'

const MOST = 60 * 1_024

const folder = inject('dashboard')
const files = readdirSync(folder, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map((entry) => ({ name: entry.name, bytes: readFileSync(join(entry.parentPath, entry.name)) }))

test('all of it is under 60 KB over the wire', () => {
  const size = files.reduce((so, { bytes }) => so + gzipSync(bytes).length, 0)
  expect(files.length).toBeGreaterThan(2)
  expect(size).toBeLessThan(MOST)
  console.log(`  dashboard: ${(size / 1_024).toFixed(1)} KB gzipped in ${files.length} files`)
})

test('the page has no script and no style of its own: a strict policy holds', () => {
  const page = files.find(({ name }) => name === 'index.html')!.bytes.toString()
  expect(page).not.toMatch(/<script(?![^>]* src=)/)
  expect(page).not.toMatch(/<style|\sstyle=|\son\w+=/)
})

test('nothing is fetched from anywhere else', () => {
  for (const { name, bytes } of files) {
    const hosts = new Set(bytes.toString().match(/https?:\/\/[\w.-]+/g) ?? [])
    hosts.delete('http://www.w3.org')
    expect([...hosts], name).toEqual([])
  }
})

test('nothing in the source hands text to the browser as markup', () => {
  const source = join(import.meta.dirname, '../../dashboard/src')
  for (const entry of readdirSync(source, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue
    const text = readFileSync(join(entry.parentPath, entry.name), 'utf8')
    expect(text, entry.name).not.toMatch(
      /dangerouslySetInnerHTML|innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(/,
    )
  }
})
