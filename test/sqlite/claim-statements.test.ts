/** What a look at a SQLite queue costs does not grow with the priorities and types that are in the way. */
import type { DatabaseSync } from 'node:sqlite'
import { describe, expect, test } from 'vitest'
import { begin, NOW } from './counted-claims.ts'

const leasedIds = (db: DatabaseSync): unknown[] =>
  db
    .prepare(`select type, priority from holdfast_task where status = 'running' order by key`)
    .all()
    .map((row) => `${row['type']} ${row['priority']}`)

describe('2,001 priorities of future tasks', () => {
  const filled = () => {
    const bench = begin()
    for (let i = 0; i < 10_005; i++)
      bench.insert('work', (i % 2_001) - 1_000, NOW + 1_000 + i, i % 3 === 0 ? NOW * 2 : null)
    return bench
  }

  test('are passed in a few statements, by a look that finds the task below them and by one that finds nothing', () => {
    const { db, insert, idle, claim } = filled()
    const nothing = idle()
    expect(nothing.next).toBe(NOW + 1_000)
    expect(nothing.cost.statements).toBeLessThan(80)
    insert('work', -1_000, NOW - 5)
    const { cost } = claim()
    expect(leasedIds(db)).toEqual(['work -1000'])
    expect(cost.statements).toBeLessThan(80)
  })

  test('do not change the order of what is due among them', () => {
    const { db, insert, claim } = filled()
    for (const priority of [-1_000, 0, 3, 999, 1_000]) insert('work', priority, NOW - 5)
    claim({ limit: 3 })
    claim({ limit: 3 })
    expect(leasedIds(db).sort()).toEqual(['work -1000', 'work 0', 'work 1000', 'work 3', 'work 999'])
    const bench = filled()
    for (const priority of [-1_000, 3, 999]) bench.insert('work', priority, NOW - 5)
    bench.claim({ limit: 2 })
    expect(leasedIds(bench.db).sort()).toEqual(['work 3', 'work 999'])
  })
})

describe('without a list of types, 20,000 types', () => {
  const filled = (at: number) => {
    const bench = begin()
    for (let i = 0; i < 20_000; i++) bench.insert(`t${String(i).padStart(5, '0')}`, 0, at)
    return bench
  }

  test('that are due cost a look a bounded number of statements and rows, and all come to their turn', () => {
    const { db, claim } = filled(NOW - 5)
    const first = claim({ types: null, limit: 1 })
    expect(first.cost.statements).toBeLessThan(1_600)
    expect(first.cost.rows).toBeLessThan(6_000)
    for (let i = 0; i < 45; i++) claim({ types: null, limit: 1 })
    const types = leasedIds(db)
    expect(new Set(types).size).toBe(46)
    expect(
      types.some((type) => String(type) > 't19000'),
      'the last types had a turn',
    ).toBe(true)
  })

  test('that are not due are passed in some looks, each bounded, and then the next instant is known', () => {
    const { db, insert, idle, claim } = filled(NOW + 1_000)
    const nexts: (number | null)[] = []
    for (let i = 0; i < 4; i++) {
      const { next, cost } = idle({ types: null })
      nexts.push(next)
      expect(cost.rows).toBeLessThan(6_000)
    }
    expect(nexts.slice(0, 3), 'there is more to look at').toEqual([NOW, NOW, NOW])
    expect(nexts[3]).toBe(NOW + 1_000)
    insert('t19999', 5, NOW - 5)
    for (let i = 0; i < 5; i++) claim({ types: null })
    expect(leasedIds(db)).toEqual(['t19999 5'])
  })

  test('a few types are claimed in the exact order', () => {
    const { db, insert, claim } = begin()
    insert('a', 0, NOW - 9)
    insert('b', 0, NOW - 10, NOW + 5)
    insert('c', 7, NOW - 1)
    insert('d', 7, NOW + 1)
    expect(claim({ types: null, limit: 2 }).next).toBe(NOW + 1)
    expect(leasedIds(db).sort()).toEqual(['b 0', 'c 7'])
  })
})
