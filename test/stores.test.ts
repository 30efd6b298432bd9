/** Every store × every conformance case, and the model walk on each. Another store is one more line in `stores`. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { MOVES } from '../src/core/machine.ts'
import { applyChange } from '../src/core/task.ts'
import { openMemory } from '../src/store/memory/store.ts'
import { openSqlite } from '../src/store/sqlite/store.ts'
import type { Store } from '../src/store/store.ts'
import { task } from '../src/testing/conformance/build.ts'
import { conformanceCases } from '../src/testing/conformance/cases.ts'
import { stories } from '../src/testing/conformance/moves.ts'
import { walk } from '../src/testing/model-walk.ts'

const folder = await mkdtemp(join(tmpdir(), 'holdfast-stores-'))
afterAll(() => rm(folder, { recursive: true, force: true }))
let files = 0
// Each case has a thread of its own: without this each of them would strip the types of the same files again.
process.env['NODE_COMPILE_CACHE'] ??= join(folder, 'compiled')

const stores: Readonly<Record<string, () => Promise<Store>>> = {
  memory: async () => openMemory(),
  sqlite: () => openSqlite(join(folder, `${++files}.db`)),
}

for (const [name, open] of Object.entries(stores)) {
  describe.concurrent(`${name}, conformance`, () => {
    for (const { name: sentence, needs = [], run } of conformanceCases) {
      test(sentence, async (context) => {
        const store = await open()
        try {
          const missing = needs.filter((need) => !store.capabilities.has(need))
          if (missing.length > 0) return context.skip(`${name} lacks ${missing.join(', ')}`)
          await run(store)
        } finally {
          await store.close()
        }
      })
    }
  })
}

const SEEDS = Array.from({ length: 20 }, (_, i) => i + 1)

for (const [name, open] of Object.entries(stores)) {
  describe.concurrent(`${name}, model walk`, () => {
    test.each(SEEDS)('the store agrees with the model after every step of seed %i', async (seed) => {
      const store = await open()
      try {
        await walk(store, { seed, steps: 300 })
      } finally {
        await store.close()
      }
    })
  })
}

test('the walks together write every move of the table', async () => {
  const { submit: _, ...moves } = MOVES
  const met = new Set(['claim'])
  for (const seed of SEEDS) for (const move of (await walk(openMemory(), { seed, steps: 300 })).keys()) met.add(move)
  expect(Object.keys(moves).filter((move) => !met.has(move))).toEqual([])
})

test('no two cases say the same', () => {
  const names = conformanceCases.map(({ name }) => name)
  expect(names.filter((name, i) => names.indexOf(name) !== i)).toEqual([])
})

test('the stories go through every move of the table to every status it leads to', () => {
  const told = new Set<string>()
  for (const { start, moves } of stories) {
    let record = task(1, start)
    for (const decide of moves) {
      const change = decide(record)!
      told.add(`${change.entry.move} → ${change.entry.to}`)
      record = applyChange(record, change)
    }
  }
  const { submit: _, ...moves } = MOVES
  const table = Object.entries(moves).flatMap(([name, { to }]) => to.map((status) => `${name} → ${status}`))
  expect(table.filter((move) => !told.has(move))).toEqual([])
})
