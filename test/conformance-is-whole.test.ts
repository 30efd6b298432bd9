/** The conformance suite and the walks leave no move of the machine out. */
import { expect, test } from 'vitest'
import { MOVES } from '../src/core/machine.ts'
import { applyChange } from '../src/core/task.ts'
import { openMemory } from '../src/store/memory/store.ts'
import { task } from '../src/testing/conformance/build.ts'
import { conformanceCases } from '../src/testing/conformance/cases.ts'
import { stories } from '../src/testing/conformance/moves.ts'
import { walk } from '../src/testing/model-walk.ts'

test('the walks together write every move of the table', async () => {
  const { submit: _, ...moves } = MOVES
  const met = new Set(['claim'])
  for (let seed = 1; seed <= 20; seed++)
    for (const move of (await walk(openMemory(), { seed, steps: 300 })).keys()) met.add(move)
  expect(Object.keys(moves).filter((move) => !met.has(move))).toEqual([])
})

test('no two cases say the same', () => {
  const names = conformanceCases.map(({ name }) => name)
  expect(names.filter((name, i) => names.indexOf(name) !== i)).toEqual([])
})

test('the stories go every way of the table', () => {
  const told = new Set<string>()
  for (const { start, moves } of stories) {
    let record = task(1, start)
    for (const decide of moves) {
      const change = decide(record)!
      told.add(`${change.entry.move}: ${change.from} → ${change.entry.to}`)
      record = applyChange(record, change)
    }
  }
  const { submit: _, ...moves } = MOVES
  const table = Object.entries(moves).flatMap(([name, { ways }]) =>
    Object.entries(ways).flatMap(([from, to]) => (to as readonly string[]).map((end) => `${name}: ${from} → ${end}`)),
  )
  expect(table.filter((move) => !told.has(move))).toEqual([])
})
