/** docs/security.md is true: all fifty requirements are on it, and every test that it names is there. */
import { existsSync, readFileSync } from 'node:fs'
import { expect, it } from 'vitest'

const root = new URL('../../', import.meta.url)
const page = readFileSync(new URL('docs/security.md', root), 'utf8')

const SHORT: Readonly<Record<string, string>> = {
  abuse: 'test/http/abuse.test.ts',
  access: 'test/http/access.test.ts',
  security: 'test/http/security.test.ts',
  serve: 'test/cli/serve.test.ts',
  document: 'test/http/document.test.ts',
  metrics: 'test/http/metrics.test.ts',
  wire: 'test/http/wire.test.ts',
}

it('has the fifty, in order', () => {
  const numbers = [...page.matchAll(/^\| (\d+) \|/gm)].map(([, number]) => Number(number))
  expect(numbers).toEqual(Array.from({ length: 50 }, (_, i) => i + 1))
})

it('names only tests that exist', () => {
  const all = [...page.matchAll(/`(test\/[\w./-]+)`/g)].map(([, file]) => file!)
  expect(all.filter((file) => !existsSync(new URL(file, root)))).toEqual([])
  let named = 0
  for (const row of page.split('\n').filter((line) => /^\| \d+ \|/.test(line))) {
    let text = ''
    for (const [, file, name] of row.matchAll(
      /`(test\/[\w./-]+|abuse|access|security|serve|document|metrics|wire)`|“([^”]+)”/g,
    )) {
      if (file !== undefined) text = readFileSync(new URL(SHORT[file] ?? file, root), 'utf8')
      else {
        named++
        expect([row.slice(0, 40), text.includes(name!) ? name : `not found: ${name}`]).toEqual([row.slice(0, 40), name])
      }
    }
  }
  expect(named).toBeGreaterThan(30)
})
