/** What is shipped: small, whole, and nothing inline. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { expect, inject, test } from 'vitest'
import { openStage } from './stage.ts'

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

test('it is served with a policy that allows nothing inline and nothing from elsewhere, and to nobody who frames it', async () => {
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
    expect(page.headers.get('cache-control')).toBe('no-store')
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
