/** A migration that was released is never edited: stores in the field have run it. A change of the schema is a new migration. */
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { expect, test } from 'vitest'
import { MIGRATIONS as POSTGRES } from '../../src/store/postgres/schema.ts'
import { MOVED, SPARSE, MIGRATIONS as SQLITE } from '../../src/store/sqlite/schema.ts'

const hashOf = (sql: string): string => createHash('sha256').update(sql).digest('hex').slice(0, 16)

test('the migrations of SQLite are those that were released', () => {
  expect(SQLITE.map(hashOf)).toEqual([
    '4f82f498648df7ac',
    'ef6a0c162db56ad5',
    '4c7d01391d9292a2',
    'ce81638c2448dcd4',
    'd672f171713023ab',
  ])
})

test('the migrations of PostgreSQL are those that were released', () => {
  expect(POSTGRES.map((migration) => hashOf(migration('"jobs"')))).toEqual([
    '074e967a76e56ff7',
    'a9e878fb5688b177',
    '590b20dfb3285725',
    'ef8ee9cdac14389d',
    'e7c2d7a892b8d7fd',
    'ab231884eca1d1cb',
  ])
})

/** The last one may not be released yet: its dump comes with the next. */
test('every schema before this one has a dump to be upgraded', () => {
  const missing = (store: string, from: number, to: number): readonly number[] =>
    Array.from({ length: to - from + 1 }, (_, n) => from + n).filter(
      (version) => !existsSync(new URL(`../${store}/fixtures/schema-${version}.sql`, import.meta.url)),
    )
  expect(missing('sqlite', 1, SQLITE.length - 1)).toEqual([])
  // Version 1 of PostgreSQL was never released.
  expect(missing('postgres', 2, POSTGRES.length - 1)).toEqual([])
})

test('queries ask in the words of the indexes, without which the planner does not use them', () => {
  expect(SQLITE.join()).toContain(`where ${SPARSE};`)
  expect(SQLITE.join()).toContain(`where ${MOVED};`)
})
