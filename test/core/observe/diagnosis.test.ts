/** Facts and what to think of them: every check can be good, and what is not good comes with a way to fix it. */
import { describe, expect, test } from 'vitest'
import { type Fact, findingOf, type Verdict } from '../../../src/core/observe/diagnosis.ts'

const HOUR = 3_600_000
const GB = 1_000_000_000
const version = { check: 'version', product: 'PostgreSQL', least: '15' } as const
const durability = { check: 'durability', setting: 'fsync', wanted: 'on', how: 'set it on' } as const
const permissions = { check: 'permissions', who: 'role app', how: 'grant it' } as const
const integrity = { check: 'integrity', by: 'quick_check', how: 'restore a backup' } as const
const log = { check: 'log', usual: 64_000_000, how: 'end the reader' } as const
const vacuum = { check: 'vacuum', setting: 'autovacuum', how: 'set it on' } as const
const transactions = { check: 'transactions', hidden: 0, how: 'end it', howToSee: 'grant it' } as const
const connections = { check: 'connections', most: 100, how: 'use a pooler' } as const
const versions = { check: 'versions', how: 'add a rule' } as const
const bloat = { check: 'bloat', what: 'table task', unit: 'rows', how: 'vacuum' } as const
const queue = { check: 'queue', queue: 'mail' } as const
const schedule = { check: 'schedule', id: 'nightly', isReadable: true, hasWorkers: true } as const

const CASES: readonly (readonly [Verdict, Fact, RegExp])[] = [
  ['ok', { ...version, version: '18.4', isEnough: true }, /^PostgreSQL 18\.4$/],
  ['problem', { ...version, version: '14.2', isEnough: false }, /14\.2 is too old: 15 is needed/],
  ['ok', { check: 'schema', found: 2, known: 2 }, /this release/],
  ['problem', { check: 'schema', found: 1, known: 2 }, /have version 1/],
  ['ok', { ...durability, value: 'on' }, /fsync is on/],
  ['problem', { ...durability, value: 'off' }, /fsync is off, not on: accepted tasks can be lost/],
  ['ok', { ...integrity, faults: [] }, /no errors/],
  ['problem', { ...integrity, faults: ['page 3'] }, /found errors: page 3/],
  ['ok', { ...permissions, missing: [] }, /role app has every right/],
  ['problem', { ...permissions, missing: ['insert on task'] }, /may not insert on task/],
  ['ok', { check: 'privacy', path: 'a.db', mode: 0o600 }, /only the owner/],
  ['warning', { check: 'privacy', path: 'a.db', mode: 0o644 }, /mode 644/],
  ['ok', { check: 'disk-space', free: 80 * GB, used: GB }, /80\.0 GB are free/],
  ['warning', { check: 'disk-space', free: 400_000_000, used: 1_000 }, /only 400\.0 MB/],
  ['warning', { check: 'disk-space', free: 2 * GB, used: 30 * GB }, /only 2\.0 GB/],
  ['ok', { ...log, size: 60_000_000 }, /60\.0 MB/],
  ['warning', { ...log, size: 200_000_000 }, /grown to 200\.0 MB/],
  ['ok', { ...bloat, dead: 40_000, live: 10 }, /40000 rows are dead/],
  ['warning', { ...bloat, dead: 90_000, live: 60_000 }, /more than are live/],
  ['ok', { ...bloat, unit: 'bytes', dead: 90_000, live: 60_000 }, /90\.0 kB/],
  ['ok', { ...vacuum, isOn: true }, /on/],
  ['problem', { ...vacuum, isOn: false }, /off/],
  ['ok', { ...transactions, oldest: null }, /^no transaction has been open for long$/],
  ['ok', { ...transactions, oldest: null, hidden: 3 }, /3 sessions of other roles are not visible/],
  ['ok', { ...transactions, oldest: { who: 'ann', age: 60_000, state: 'active' } }, /no transaction/],
  [
    'warning',
    {
      ...transactions,
      oldest: { who: 'ann (pid 7, psql)', age: 61_000, state: 'idle in transaction' },
    },
    /of ann \(pid 7, psql\) has been open for 1m 1s \(idle in transaction\)/,
  ],
  [
    'warning',
    { ...transactions, oldest: { who: 'ann', age: HOUR, state: 'idle in transaction' } },
    /of ann has been open for 1h \(idle in transaction\)/,
  ],
  ['ok', { ...connections, used: 10 }, /10 of 100/],
  ['warning', { ...connections, used: 95 }, /soon be refused/],
  ['ok', { check: 'conditional-writes', areAtomic: true, found: 'one of ten wins' }, /one of ten/],
  ['problem', { check: 'conditional-writes', areAtomic: false, found: 'two of ten won' }, /two of ten/],
  ['ok', { ...versions, areKept: false, areExpired: false }, /no old versions/],
  ['ok', { ...versions, areKept: true, areExpired: true }, /a rule removes them/],
  ['warning', { ...versions, areKept: true, areExpired: false }, /forever/],
  ['ok', { check: 'clock', ahead: 4_000, uncertainty: 5 }, /agree to 4s/],
  ['ok', { check: 'clock', ahead: -9_000, uncertainty: 6_000 }, /agree/],
  ['warning', { check: 'clock', ahead: -90_000, uncertainty: 5 }, /1m 30s behind the store's/],
  ['warning', { check: 'clock', ahead: 90_000, uncertainty: 5 }, /ahead of/],
  ['ok', { check: 'workers', versions: {} }, /no live workers/],
  ['ok', { check: 'workers', versions: { '1.0.0': 3 } }, /3 with 1\.0\.0/],
  ['warning', { check: 'workers', versions: { '1.0.0': 3, '1.1.0': 1 } }, /3 with 1\.0\.0, 1 with 1\.1\.0/],
  ['ok', { check: 'stuck', worker: 'w1', count: 0, slots: 3, types: [], isClaiming: true }, /no handler is stuck/],
  [
    'warning',
    { check: 'stuck', worker: 'w1', count: 1, slots: 3, types: ['crawl'], isClaiming: true },
    /^worker w1 with 3 slots: 1 handler is stuck \('crawl'\)$/,
  ],
  [
    'problem',
    { check: 'stuck', worker: 'w1', count: 3, slots: 3, types: ['a', 'b'], isClaiming: false },
    /^worker w1 with 3 slots: 3 handlers are stuck \('a', 'b'\), and it takes no new tasks$/,
  ],
  ['ok', { ...queue, ready: 5, isPaused: false, unserved: [] }, /5 tasks wait/],
  ['ok', { ...queue, ready: 0, isPaused: true, unserved: [] }, /paused and empty/],
  ['warning', { ...queue, ready: 1, isPaused: true, unserved: [] }, /'mail' is paused, and 1 task waits in it/],
  [
    'warning',
    { ...queue, ready: 2, isPaused: false, unserved: ['a'] },
    /no live worker serves it with a handler for 'a'/,
  ],
  [
    'warning',
    {
      ...queue,
      ready: 40,
      isPaused: false,
      unserved: [],
      limit: { running: 2, concurrency: 2, waited: 12 * 60_000 },
    },
    /^queue 'mail' is at its limit \(2 of 2 running\), and 40 tasks wait, the first of them for 12m$/,
  ],
  [
    'ok',
    { ...queue, ready: 40, isPaused: false, unserved: [], limit: { running: 2, concurrency: 2, waited: 60_000 } },
    /40 tasks wait/,
  ],
  [
    'ok',
    { ...queue, ready: 40, isPaused: false, unserved: [], limit: { running: 1, concurrency: 2, waited: HOUR } },
    /40 tasks wait/,
  ],
  ['ok', { check: 'paused-group', queue: 'mail', group: 'acme', ready: 0 }, /is paused and empty/],
  [
    'warning',
    { check: 'paused-group', queue: 'mail', group: 'acme', ready: 3 },
    /^group 'acme' of queue 'mail' is paused, and 3 tasks wait in it$/,
  ],
  ['problem', { check: 'reading', what: 'queues', error: 'damaged' }, /queues could not be read: damaged/],
  ['ok', { check: 'leases', lapsed: 0, oldest: 0 }, /held by a live worker/],
  ['problem', { check: 'leases', lapsed: 2, oldest: HOUR }, /2 running tasks have a lease that lapsed up to 1h ago/],
  ['ok', { ...schedule, late: 30_000 }, /on time/],
  ['problem', { ...schedule, late: HOUR }, /should have fired 1h ago, though workers are alive/],
  ['problem', { ...schedule, late: HOUR, hasWorkers: false }, /no worker is alive to fire it/],
  ['problem', { ...schedule, late: 0, isReadable: false }, /cannot be read/],
]

describe('a finding', () => {
  test.each(CASES)('is %s: %j', (verdict, fact, found) => {
    const finding = findingOf(fact)
    expect(finding).toMatchObject({ check: fact.check, verdict, found: expect.stringMatching(found) })
    if (verdict === 'ok') expect(finding.fix).toBeNull()
    else expect(finding.fix).toMatch(/\w/)
  })

  test('of every check can be good, and can be bad', () => {
    const verdicts = Map.groupBy(CASES, ([, { check }]) => check)
    for (const [check, cases] of verdicts) {
      const kinds = new Set(cases.map(([verdict]) => verdict === 'ok'))
      if (check !== 'reading') expect([check, kinds.size]).toEqual([check, 2])
    }
  })
})
