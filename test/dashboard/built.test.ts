/** What is shipped: small, whole, and nothing inline. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { describe, expect, inject, test } from 'vitest'
import { LONGEST_FILE } from '../rooms.ts'
import { openStage } from './stage.ts'

const MOST = 80 * 1_024

const folder = inject('dashboard')
const files = readdirSync(folder, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map((entry) => ({ name: entry.name, bytes: readFileSync(join(entry.parentPath, entry.name)) }))

test('all of it is under 80 KB over the wire', () => {
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

describe('the source', () => {
  const folder = join(import.meta.dirname, '../../dashboard/src')
  const sources = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .map((path) => ({ path: path.slice(folder.length + 1), text: readFileSync(path, 'utf8') }))

  test('hands no text to the browser as markup', () => {
    for (const { path, text } of sources)
      expect(text, path).not.toMatch(
        /dangerouslySetInnerHTML|(inner|outer)HTML|insertAdjacentHTML|document\.write|eval\(/,
      )
  })

  test('uses the server by HTTP only, and has no long files', () => {
    expect(sources.map(({ path }) => path)).toContain('main.tsx')
    for (const { path, text } of sources) {
      expect(text, path).not.toMatch(/from '(\.\.\/)+src\/|from 'holdfast/)
      expect(text.split('\n').length, path).toBeLessThan(LONGEST_FILE)
    }
  })
})

test('it is served with a policy that allows nothing inline, nothing from elsewhere and no frame around it', async () => {
  const stage = await openStage()
  try {
    const page = await fetch(stage.address)
    const policy = page.headers.get('content-security-policy')!
    for (const rule of [
      "default-src 'none'",
      "script-src 'self'",
      "style-src 'self'",
      "frame-ancestors 'none'",
      "base-uri 'none'",
    ])
      expect(policy).toContain(rule)
    expect(policy).not.toContain('unsafe')
    expect(page.headers.get('cache-control')).toBe('no-cache')
    const script = files.find(({ name }) => name.endsWith('.js'))!.name
    expect((await fetch(`${stage.address}assets/${script}`)).headers.get('cache-control')).toContain('immutable')
    const whole = await fetch(stage.address, { headers: { 'accept-encoding': 'identity' } })
    expect(whole.headers.get('content-encoding')).toBeNull()
    expect(page.headers.get('content-encoding')).toBe('gzip')
    expect(await page.text()).toBe(await whole.text())
    for (const path of [
      'assets/../../package.json',
      'assets/%2e%2e/%2e%2e/package.json',
      'assets/nothing.js',
      '..%2fpackage.json',
    ])
      expect((await fetch(stage.address + path)).status, path).toBe(404)
  } finally {
    await stage.close()
  }
})
