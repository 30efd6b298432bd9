/** The rooms of CONTRIBUTING.md stay rooms: who may import whom, and who may look at a clock. */
import { readdirSync, readFileSync } from 'node:fs'
import { join, sep } from 'node:path'
import { describe, expect, test } from 'vitest'
import { LONGEST_FILE, type SourceFile, tooLong, violations } from './rooms.ts'

const root = join(import.meta.dirname, '..')

const sources: readonly SourceFile[] = readdirSync(join(root, 'src'), { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
  .map((entry) => join(entry.parentPath, entry.name))
  .map((path) => ({ path: path.slice(root.length + 1).replaceAll(sep, '/'), text: readFileSync(path, 'utf8') }))

test('every file of src is read', () => {
  expect(sources.map(({ path }) => path)).toContain('src/core/machine.ts')
  expect(sources.length).toBeGreaterThan(30)
})

test('no file imports what its room must not know, or uses what only the clock may', () => {
  expect(violations(sources)).toEqual([])
})

test('core names no database and none of its commands: the store that reports a fact brings the advice', () => {
  const named =
    /\b(sqlite3?|postgres(ql)?|nats|pg_\w+|autovacuum|max_connections|idle_in_transaction\w*|Noncurrent\w+)\b/i
  const found = sources.filter(({ path, text }) => path.startsWith('src/core/') && named.test(text))
  expect(found.map(({ path, text }) => `${path}: ${named.exec(text)![0]}`)).toEqual([])
})

test('no file is longer than a reader is patient', () => {
  expect(tooLong(sources)).toEqual([])
})

describe('a planted violation is caught', () => {
  const planted: readonly (readonly [path: string, text: string, why: RegExp])[] = [
    ['src/core/a.ts', `import { Store } from '../store/store.ts'`, /core is pure/],
    ['src/core/a.ts', `import type { Store } from '../store/store.ts'`, /core is pure/],
    ['src/core/a.ts', `import {\n  one,\n  two,\n} from '../runtime/clock.ts'`, /core is pure/],
    ['src/core/a.ts', `export * from '../index.ts'`, /core is pure/],
    ['src/core/a.ts', `import { readFileSync } from 'node:fs'`, /core is pure/],
    ['src/core/a.ts', `import pg from 'pg'`, /core is pure/],
    ['src/core/a.ts', 'const at = Date.now()', /uses Date\.now: .*handed in/],
    ['src/core/a.ts', 'const wall = Date.now', /uses Date\.now/],
    ['src/core/a.ts', 'const at = new Date( )', /uses new Date/],
    ['src/core/a.ts', 'const dice = Math.random()', /uses Math\.random/],
    ['src/core/a.ts', 'setTimeout(() => {}, 1)', /uses setTimeout/],
    ['src/core/a.ts', 'const a = async () => await b()', /uses await/],
    ['src/store/store.ts', `import { Client } from '../runtime/client.ts'`, /contract/],
    ['src/store/sqlite/a.ts', `import { openMemory } from '../memory/store.ts'`, /another store/],
    ['src/store/sqlite/a.ts', `import { Worker } from '../../runtime/worker/worker.ts'`, /must not know workers/],
    ['src/store/postgres/a.ts', `import { Engine } from '../kv/engine.ts'`, /another store/],
    ['src/store/s3/a.ts', `import { Nats } from '../nats/store.ts'`, /another store/],
    ['src/store/kv/a.ts', `const late = await import('../s3/store.ts')`, /which store it serves/],
    ['src/store/kv/access/a.ts', `import { Tasks } from '../records/tasks.ts'`, /access may import only/],
    ['src/store/kv/hints/a.ts', `import { Tasks } from '../records/tasks.ts'`, /hints may import only/],
    ['src/store/kv/records/a.ts', `import { KeyHints } from '../hints/key-hints.ts'`, /records may import only/],
    ['src/store/kv/records/names.ts', `import { Tasks } from './tasks.ts'`, /names may import only/],
    ['src/store/kv/cleanup/a.ts', `import { KvStore } from '../store.ts'`, /cleanup may import only/],
    ['src/store/kv/unknown/a.ts', `import { KvStore } from '../store.ts'`, /no room/],
    ['src/store/nats/connection/a.ts', `import { Subjects } from '../subjects.ts'`, /connection may import only/],
    ['src/store/nats/messages/a.ts', `import { NatsBucket } from '../bucket.ts'`, /messages may import only/],
    ['src/store/nats/a.ts', `import { S3KeyValue } from '../s3/key-value.ts'`, /another store/],
    ['src/store/sqlite/migrations/9-a.ts', `import { COLUMNS } from '../columns.ts'`, /frozen/],
    ['src/runtime/client.ts', `import { openSqlite } from '../store/sqlite/store.ts'`, /which store it has/],
    ['src/runtime/client.ts', `const { openSqlite } = await import('../store/sqlite/store.ts')`, /which store it has/],
    ['src/runtime/client.ts', `import { connect } from '../connect.ts'`, /which store it has/],
    ['src/runtime/client.ts', 'const at = Date.now()', /only runtime\/clock\.ts/],
    ['src/runtime/client.ts', 'setInterval(tick, 5)', /only runtime\/clock\.ts/],
    ['src/runtime/client.ts', 'const dice = Math.random()', /only runtime\/clock\.ts/],
    ['src/runtime/client.ts', 'const t = process.hrtime.bigint()', /only runtime\/clock\.ts/],
    ['src/runtime/session.ts', `import { Worker } from './worker/worker.ts'`, /base may import only base/],
    ['src/runtime/worker/a.ts', `import { Transfer } from '../transfer/transfer.ts'`, /worker may import only/],
    ['src/runtime/worker/a.ts', `import { Scheduler } from '../schedules/scheduler.ts'`, /worker may import only/],
    ['src/runtime/tasks/a.ts', `import { Fetcher } from '../worker/fetch/fetcher.ts'`, /tasks may import only/],
    ['src/runtime/unknown/a.ts', '', /no room/],
    ['src/testing/a.ts', `import { test } from 'vitest'`, /any test runner/],
    ['src/testing/a.ts', `import test from 'node:test'`, /any test runner/],
    ['src/testing/a.ts', `import { openSqlite } from '../store/sqlite/store.ts'`, /any store/],
    ['src/cli/main.ts', `import { Client } from '../runtime/client.ts'`, /public API/],
    ['src/cli/commands/list.ts', `import { viewOf } from '../../core/views.ts'`, /public API/],
    ['src/cli/output/a.ts', `import { input } from '../program/input.ts'`, /output may import only/],
    ['src/cli/commands/a.ts', `import { main } from '../main.ts'`, /commands may import only/],
    ['src/cli/unknown/a.ts', '', /no room/],
    ['src/http/auth/a.ts', `import { Feed } from '../live/feed.ts'`, /auth may import only/],
    ['src/http/wire/a.ts', `import { Tokens } from '../auth/tokens.ts'`, /wire may import only/],
    ['src/http/routes/a.ts', `import { Calls } from '../calls.ts'`, /routes may import only/],
    ['src/http/unknown/a.ts', '', /no room/],
    ['src/http/server.ts', `import { openSqlite } from '../store/sqlite/store.ts'`, /public API/],
    ['src/connect.ts', `import { openSqlite } from './store/sqlite/store.ts'`, /dynamically/],
    ['src/index.ts', `export { openMemory } from './store/memory/store.ts'`, /must not load any store/],
    ['src/shared/a.ts', '', /no room/],
    ['src/helpers.ts', '', /no room/],
  ]
  test.each(planted)('%s: %s', (path, text, why) => {
    expect(violations([{ path, text }]).join('\n')).toMatch(why)
  })

  test(`a file of ${LONGEST_FILE + 1} lines`, () => {
    const text = 'a\n'.repeat(LONGEST_FILE)
    expect(tooLong([{ path: 'src/core/a.ts', text }])).toEqual([])
    expect(tooLong([{ path: 'src/core/a.ts', text: `${text}a\n` }])).toHaveLength(1)
  })
})

test('what the rooms allow is not caught', () => {
  const allowed: readonly (readonly [path: string, text: string])[] = [
    ['src/core/a.ts', `import ms from 'ms'\nimport { task } from './task.ts'\nconst at = new Date(1).toISOString()`],
    [
      'src/core/a.ts',
      `/** No clock: never Date.now(), never await. */\n// nor setTimeout\nconst text = 'they await Date.now here'`,
    ],
    [
      'src/store/sqlite/a.ts',
      `import { task } from '../../core/task.ts'\nimport type { Store } from '../store.ts'\nimport { LeaseKeeper } from '../threads/lease-keeper.ts'\nimport { b } from './b.ts'\nconst at = Date.now()`,
    ],
    ['src/store/s3/a.ts', `import { Engine } from '../kv/engine.ts'\nimport { S3Client } from '@aws-sdk/client-s3'`],
    [
      'src/runtime/client.ts',
      `import { uuidv7 } from 'uuidv7'\nimport { Clock } from './clock.ts'\nimport type { Store } from '../store/store.ts'`,
    ],
    ['src/runtime/clock.ts', 'const at = Date.now()\nsetTimeout(() => Math.random(), 5)'],
    ['src/testing/a.ts', `import assert from 'node:assert/strict'\nimport { Client } from '../runtime/client.ts'`],
    [
      'src/cli/commands/list.ts',
      `import { connect } from '../../index.ts'\nimport { render } from '../output/render.ts'`,
    ],
    [
      'src/connect.ts',
      `import type { Store } from './store/store.ts'\nconst { openSqlite } = await import('./store/sqlite/store.ts')`,
    ],
    ['src/index.ts', `export { connect } from './connect.ts'\nexport { Client } from './runtime/client.ts'`],
  ]
  expect(violations(allowed.map(([path, text]) => ({ path, text })))).toEqual([])
})
