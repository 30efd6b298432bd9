/** What a claim in turns reads depends on what it takes and on how many groups it passes, never on how much waits in them. */
import { expect, test } from 'vitest'
import type { GroupTurns } from '../../src/core/flow/group-turns.ts'
import { Claimer } from '../../src/store/postgres/claim/claimer.ts'
import type { ClaimRequest, ClaimResult } from '../../src/store/store.ts'
import { type Bench, begin, freshDatabase, onPostgres } from './setup.ts'
import { type Reads, watched } from './watched.ts'

const AMOUNT = 100
const UNBOUND: GroupTurns = { perGroup: null, after: null, mostEach: 1_000, without: [], only: null, passed: [] }

/** `group` is an expression in n. They are due, unless \`at\` says when. */
const fill = ({ schema, sql }: Bench, count: number, group: string, { at = 'n / 100', type = `'work'` } = {}) =>
  sql(`insert into ${schema}.task (id, available_at, created_at, updated_at, queue, type, input, history, task_group)
    select gen_random_uuid(), ${at}, 0, 0, 'default', ${type}, '{}', '{"n":1,"at":0,"move":"submit","to":"pending","by":"t","op":"o"}', ${group}
    from generate_series(0, ${count - 1}) n`)

const named = (prefix: string, groups: number): string => `'${prefix}' || lpad((n % ${groups})::text, 5, '0')`

onPostgres('a claim in turns', (url) => {
  const opened = async (at = url): Promise<Bench> => {
    const bench = begin(at)
    await (await bench.connect()).close()
    await bench.sql(`alter table ${bench.schema}.task set (autovacuum_enabled = false)`)
    return bench
  }

  const claiming = async ({ schema }: Bench, types: readonly string[] | null = ['work'], at = url) => {
    const { executor, reads } = await watched(at, schema)
    const claimer = new Claimer(executor, schema)
    let op = 0
    return async (turns: Partial<GroupTurns>, limit = AMOUNT): Promise<ClaimResult & { reads: Reads }> => {
      const limits = { concurrency: null, notAfter: null, turns: { ...UNBOUND, ...turns } }
      const rest = { workerId: 'w', leaseTtl: 600_000, dueLimit: 0, now: null }
      const want: ClaimRequest = { queue: 'default', types, limit, op: `op-${op++}`, limits, ...rest }
      const before = reads.length
      const result = await claimer.look(want)
      const sum = (of: keyof Reads): number => reads.slice(before).reduce((total, one) => total + one[of], 0)
      return { ...result, reads: { rows: sum('rows'), blocks: sum('blocks') } }
    }
  }

  /** Beside what is taken: of each group that was passed a dozen entries and 25 blocks. */
  const expectFew = ({ leased, reads }: ClaimResult & { reads: Reads }, passed = AMOUNT): void => {
    expect(leased).toHaveLength(AMOUNT)
    expect(reads.rows).toBeLessThan(AMOUNT * 8 + passed * 12)
    expect(reads.blocks).toBeLessThan(AMOUNT * 40 + passed * 25)
  }

  const claimTimes = async (claim: Awaited<ReturnType<typeof claiming>>, times: number): Promise<void> => {
    let after: string | null = null
    for (let n = 0; n < times; n++) {
      const found = await claim({ after, perGroup: 50 })
      // The first one also plans and loads the catalogue.
      if (n > 0) expectFew(found)
      expect(new Set(found.leased.map(({ group }) => group)).size).toBe(AMOUNT)
      after = found.leased.at(-1)!.group
    }
  }

  const oneBigAndMany = async (bench: Bench): Promise<void> => {
    await fill(bench, 100_000, `'big'`)
    await fill(bench, 99 * 20, named('g', 99))
  }

  test('reads what it takes behind 100,000 tasks of one group, without statistics and with fresh ones', async () => {
    const bench = await opened()
    await oneBigAndMany(bench)
    await claimTimes(await claiming(bench), 5)
    await bench.sql(`analyze ${bench.schema}.task`)
    await claimTimes(await claiming(bench), 5)
  })

  test('reads no more when the statistics are those of a table that was drained', async () => {
    const bench = await opened()
    await fill(bench, 5_000, named('g', 10))
    await bench.sql(
      `update ${bench.schema}.task set status = 'completed', completed_at = 1, updated_at = 1`,
      `analyze ${bench.schema}.task`,
    )
    await oneBigAndMany(bench)
    await claimTimes(await claiming(bench), 5)
  })

  test('reads no more after 100,000 claims without a vacuum', async () => {
    // A transaction that another test has open would keep the entries of what was claimed.
    const own = await freshDatabase(url)
    const bench = await opened(own)
    await fill(bench, 120_000, named('g', 1_000))
    const claim = await claiming(bench, ['work'], own)
    let after: string | null = null
    for (let n = 0; n < 100; n++) {
      const { leased } = await claim({ after, perGroup: 2 }, 1_000)
      expect(leased).toHaveLength(1_000)
      after = leased.at(-1)!.group
      await bench.sql(
        `update ${bench.schema}.task set status = 'completed', completed_at = 1, lease_expires_at = null where status = 'running'`,
      )
    }
    for (let n = 0; n < 5; n++) {
      const found: Awaited<ReturnType<typeof claim>> = await claim({ after, perGroup: 2 })
      expect(found.leased).toHaveLength(AMOUNT)
      // The entries of what was claimed are still there; the backlog would be 20,000.
      expect(found.reads.rows).toBeLessThan(AMOUNT * 20)
      after = found.leased.at(-1)!.group
    }
  })

  test('hops over 1,000 full groups once, and passes over them as one range', async () => {
    const bench = await opened()
    await fill(bench, 100_000, named('a', 1_000))
    await bench.sql(`update ${bench.schema}.task set status = 'running', lease_expires_at = 9000000000000, lease_token = id::text
      where id in (select id from (select id, row_number() over (partition by task_group) as n from ${bench.schema}.task) x where n <= 2)`)
    await fill(bench, 10_000, named('g', 1_000))
    const claim = await claiming(bench)
    await claim({ perGroup: 2 })
    const seen = await claim({ perGroup: 2 })
    expectFew(seen, 1_100)
    expect(seen.full!.length).toBeGreaterThanOrEqual(1_000)
    const passed = await claim({ perGroup: 2, passed: [{ first: 'a00000', last: 'a00999' }] })
    expectFew(passed, 200)
    expect(passed.full!.filter((group) => group < 'b')).toEqual([])
  })

  test('of several types and priorities reads what it takes', async () => {
    const bench = await opened()
    await fill(bench, 60_000, named('g', 500), { type: `'type_' || n % 5` })
    await fill(bench, 20_000, 'null', { type: `'type_' || n % 5` })
    await bench.sql(`update ${bench.schema}.task set priority = 1 where task_group < 'g00050'`)
    const claim = await claiming(bench, null)
    await claim({})
    const found = await claim({ after: 'g00030' })
    expect(found.leased.map(({ group }) => group).slice(0, 2)).toEqual(['g00031', 'g00032'])
    expect(found.leased.slice(0, 50).every(({ priority }) => priority === 1)).toBe(true)
    // One entry for each of five types in a hop, and the rounds.
    expect(found.reads.rows).toBeLessThan(AMOUNT * 60)
  })

  test('comes past any number of groups with nothing ready, a bounded number of hops at a time', async () => {
    const bench = await opened()
    await fill(bench, 5_000, named('later', 5_000), { at: '9000000000000' })
    await fill(bench, 1, `'z'`)
    const claim = await claiming(bench)
    const leased: (string | null)[] = []
    let looks = 0
    for (let next = 0; next < Date.now() + 60_000 && looks < 20; looks++) {
      const found = await claim({})
      expect(found.reads.rows).toBeLessThan(8_000)
      leased.push(...found.leased.map(({ group }) => group))
      next = found.next!
    }
    expect(leased).toEqual(['z'])
    // About 1,200 hops in each; and when the round is complete, there is an instant to wait for.
    expect(looks).toBeLessThan(15)
  })

  test('with thousands of expired tasks in a group reads some of them, and goes on', async () => {
    const bench = await opened()
    await fill(bench, 50_000, `'a'`)
    await bench.sql(`update ${bench.schema}.task set expires_at = 5`)
    await fill(bench, 200, named('g', 200))
    const claim = await claiming(bench)
    await claim({})
    const found = await claim({ after: 'g00100' })
    expect(found.leased.length).toBe(AMOUNT)
    expect(found.reads.rows).toBeLessThan(AMOUNT * 20)
  })
})
