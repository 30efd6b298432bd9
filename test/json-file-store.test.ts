/** The store of examples/json-file-store.ts, checked as its author would: with the published package alone. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Store } from 'holdfast/store'
import { conformanceCases, walk } from 'holdfast/testing'
import { afterAll, describe, expect, test } from 'vitest'
import { openJsonFile } from '../examples/json-file-store.ts'

const folder = mkdtempSync(join(tmpdir(), 'holdfast-json-'))
afterAll(() => rmSync(folder, { recursive: true }))
let files = 0
const open = (): Store => openJsonFile(join(folder, `${++files}.json`))

describe('the example store keeps the contract', () => {
  for (const { name, needs = [], run } of conformanceCases) {
    test(name, async (context) => {
      const store = open()
      const missing = needs.filter((need) => !store.capabilities.has(need))
      if (missing.length > 0) return context.skip(`it does not claim ${missing.join(', ')}`)
      await run(store)
      await store.close()
    })
  }

  test('it agrees with the model after every step', async () => {
    for (const seed of [1, 2, 3]) {
      const store = open()
      await walk(store, { seed, steps: 200 })
      await store.close()
    }
  })
})

test('the example store has fewer than 200 lines, and borrows nothing from another store', () => {
  const text = readFileSync('examples/json-file-store.ts', 'utf8')
  expect(text.trimEnd().split('\n').length).toBeLessThan(200)
  const sources = [...text.matchAll(/from '(.+)'/g)].map((found) => found[1])
  expect([...new Set(sources)]).toEqual(['node:fs', 'holdfast', 'holdfast/store'])
})
