/** What limits hold back on SQLite costs a claim little, and the limits hold for every connection. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { DatabaseSync } from 'node:sqlite'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { ClaimLimits, GroupTurns } from '../../src/core/flow/group-turns.ts'
import { complete } from '../../src/core/machine.ts'
import { openSqlite } from '../../src/store/sqlite/store.ts'
import type { Store } from '../../src/store/store.ts'
import { task, want } from '../../src/testing/conformance/build.ts'
import { begin, NOW } from './counted-claims.ts'

const inTurns = (turns: Partial<GroupTurns> = {}, concurrency: number | null = null): ClaimLimits => ({
  concurrency,
  notAfter: null,
  turns: { perGroup: null, after: null, mostEach: 1_000, without: [], only: null, passed: [], ...turns },
})

const named = (prefix: string, i: number): string => `${prefix}${String(i).padStart(5, '0')}`

const runningGroups = (db: DatabaseSync): readonly unknown[] =>
  db
    .prepare(`select task_group from holdfast_task where status = 'running' order by key`)
    .all()
    .map((row) => row['task_group'])

describe('a claim in turns', () => {
  test('reads about as many rows as it leases, whatever waits in one group, each by its index', () => {
    const { db, insert, claim, texts } = begin()
    db.exec('begin')
    for (let i = 0; i < 100_000; i++) insert('work', 0, NOW - 5, null, 'big')
    for (let i = 0; i < 99 * 10; i++) insert(i % 2 ? 'work' : 'other', 0, NOW - 5, null, named('g', i % 99))
    db.exec('commit')
    const limits = inTurns({ perGroup: 2 })
    const types = ['work', 'other']
    const { cost } = claim({ limits, types, limit: 100 })
    expect(new Set(runningGroups(db)).size, 'every group has had a turn').toBe(100)
    expect(cost.rows).toBeLessThan(700)
    expect(cost.statements).toBeLessThan(700)
    const second = claim({ limits, types, limit: 150 })
    expect(second.cost.rows, 'with a second task for each, and the look for a third').toBeLessThan(1_600)
    const third = claim({ limits, types, limit: 100 })
    expect(third.held).toMatchObject({ isHeldBack: true })
    expect(third.held!.full.length).toBe(100)
    expect(third.cost.rows, 'when all of them are full').toBeLessThan(700)
    // The first entry of an index needs no search.
    const isFirstOfAll = (text: string): boolean => /order by (lease_)?expires_at limit 1$/.test(text)
    for (const text of [...texts].filter((one) => !isFirstOfAll(one))) {
      const plan = db.prepare(`explain query plan ${text}`).all()
      const details = plan.map((row) => String(row['detail']))
      expect(
        details.filter((detail) => /SCAN holdfast_task|TEMP B-TREE/.test(detail)),
        text,
      ).toEqual([])
    }
  })

  test('jumps over groups that were full a moment ago with one hop', () => {
    const { db, insert, claim } = begin()
    for (let i = 0; i < 2_000; i++) insert('work', 0, NOW - 5, null, named('a', i % 1_000))
    db.exec(`update holdfast_task set status = 'running' where key <= 1000`)
    insert('work', 0, NOW - 5, null, 'free')
    const passed = [{ first: named('a', 0), last: named('a', 999) }]
    const { cost, held } = claim({ limits: inTurns({ perGroup: 1, passed }) })
    expect(runningGroups(db).at(-1)).toBe('free')
    expect(held).toMatchObject({ isHeldBack: true })
    expect(cost.statements).toBeLessThan(25)
  })

  test('comes to a group behind thousands in which nothing is due, in some looks, each bounded', () => {
    const { db, insert, claim, idle } = begin()
    for (let i = 0; i < 5_000; i++) insert('work', 0, NOW + 1_000, null, named('later', i))
    insert('work', 0, NOW - 5, null, 'now')
    const limits = inTurns({ perGroup: 1, after: named('later', 10) })
    let looks = 0
    for (; runningGroups(db).length === 0 && looks < 10; looks++) {
      const { cost, next } = claim({ limits, limit: 1 })
      expect(cost.statements).toBeLessThan(1_100)
      if (runningGroups(db).length === 0) expect(next, 'there is more to look at').toBe(NOW)
    }
    expect(runningGroups(db)).toEqual(['now'])
    insert('work', 0, NOW - 5, null, 'now')
    const answers = Array.from({ length: 6 }, () => idle({ limits, limit: 1 }))
    const last = answers.find(({ next }) => next !== NOW)
    expect(last?.next, 'once round, it waits for the next instant').toBe(NOW + 1_000)
    expect(last?.held?.isHeldBack, 'an earlier look has seen the group that is full').toBe(true)
  })

  test('takes the groups of several types in the order of SQLite, each once', () => {
    const { db, insert, claim } = begin()
    const groups = ['\u{1f511}', '\uff01', 'é', 'z', '\ue000']
    for (const type of ['a', 'b']) for (const group of groups) insert(type, 0, NOW - 5, null, group)
    claim({ types: ['a', 'b'], limits: inTurns({ perGroup: 1 }) })
    const ordered = db.prepare('select distinct task_group from holdfast_task order by task_group').all()
    expect([...runningGroups(db)].sort()).toEqual([...groups].sort())
    for (const [i, { task_group: after }] of ordered.entries()) {
      db.exec(`update holdfast_task set status = 'pending'`)
      claim({ types: ['a', 'b'], limit: 1, limits: inTurns({ perGroup: 1, after: String(after) }) })
      expect(runningGroups(db)).toEqual([ordered[(i + 1) % ordered.length]!['task_group']])
    }
  })
})

test('four connections that claim at once never exceed the limits of queue and group, and all tasks come to their turn', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-turns-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const stores: Store[] = []
  for (let i = 0; i < 4; i++) stores.push(await openSqlite(join(folder, 'turns.db')))
  onTestFinished(async () => void (await Promise.all(stores.map((store) => store.close()))))
  const count = 400
  await stores[0]!.insert(
    Array.from({ length: count }, (_, i) => ({ task: task(i + 1, { group: named('g', i % 7) }) })),
    { now: null },
  )
  const limits = inTurns({ perGroup: 2 }, 9)
  const held = new Map<string, string>()
  let done = 0
  const serve = async (store: Store, worker: number): Promise<void> => {
    while (done < count) {
      const { leased } = await store.claim(
        want({ limits, limit: 4, workerId: `worker-${worker}`, now: null, leaseTtl: 600_000 }),
      )
      for (const { id, group } of leased) held.set(id, group!)
      expect(held.size).toBeLessThanOrEqual(9)
      const ofGroup = [...held.values()]
      for (const group of ofGroup) expect(ofGroup.filter((other) => other === group).length).toBeLessThanOrEqual(2)
      // Others claim in the meantime. Counted as ended before the end is written: what is counted has a lease for certain.
      for (const other of stores) await other.now()
      for (const { id } of leased) held.delete(id)
      await store.commit(
        leased.map((record) =>
          complete(record, { token: record.lease!.token }, { text: '1', encoding: 'json' }, record.lease!.claimedAt),
        ),
      )
      done += leased.length
    }
  }
  await Promise.all(stores.map(serve))
  expect(done).toBe(count)
})
