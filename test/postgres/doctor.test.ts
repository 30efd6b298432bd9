/** `holdfast doctor` on PostgreSQL. */
import { Client as PgClient } from 'pg'
import { expect, onTestFinished, test } from 'vitest'
import type { Fact } from '../../src/index.ts'
import { openPostgres } from '../../src/store/postgres/store.ts'
import { makeFolder } from '../cli/shell.ts'
import { begin, onPostgres } from './setup.ts'

onPostgres('doctor', (url) => {
  const folder = makeFolder()

  const factsOf = async (schema: string, through = url): Promise<readonly Fact[]> => {
    const store = await openPostgres(through, { schema, migrate: false })
    try {
      return await store.examine!()
    } finally {
      await store.close()
    }
  }

  test('looks at settings, rights, transactions, dead rows and the clock, and says how to fix', async () => {
    const bench = begin(url)
    await bench.connect()
    const [settings] = await bench.sql(`select current_setting('fsync') as fsync`)
    const { code, stdout } = await folder.run(['doctor', '--json', '--url', `${url}?schema=${bench.schema}`])
    const { findings, problems } = JSON.parse(stdout)
    const checks = new Set(findings.map(({ check }: { check: string }) => check))
    for (const check of [
      'version',
      'schema',
      'durability',
      'permissions',
      'transactions',
      'vacuum',
      'bloat',
      'connections',
      'clock',
    ])
      expect(checks).toContain(check)
    // A server for tests may run without fsync: then that is what is found.
    const isSafe = settings!['fsync'] === 'on'
    expect(code).toBe(problems > 0 ? 6 : 0)
    expect(problems > 0).toBe(findings.some(({ verdict }: { verdict: string }) => verdict === 'problem'))
    expect(findings.find(({ found }: { found: string }) => found.startsWith('fsync is'))).toMatchObject(
      isSafe ? { verdict: 'ok', fix: null } : { verdict: 'problem', fix: expect.stringContaining('fsync = on') },
    )
  })

  test('sees the oldest open transaction and who has it', async () => {
    const bench = begin(url)
    await bench.connect()
    const open = new PgClient({ connectionString: url, application_name: 'a report' })
    await open.connect()
    onTestFinished(() => open.end())
    await open.query('begin')
    await open.query('select 1')
    const transactions = async () => (await factsOf(bench.schema)).find(({ check }) => check === 'transactions')
    // Tests of other files may have an older one open on this server.
    await expect
      .poll(transactions, { timeout: 50_000, interval: 500 })
      .toMatchObject({ oldest: { who: expect.stringContaining('a report'), state: 'idle in transaction' } })
  })

  test('tells a role what it may not do, and that it does not see the sessions of others', async () => {
    const bench = begin(url)
    await bench.connect()
    const role = `${bench.schema}_reader`
    await bench.sql(
      `create role ${role} login password 'secret'`,
      `grant usage on schema ${bench.schema} to ${role}`,
      `grant select on all tables in schema ${bench.schema} to ${role}`,
      `grant insert on ${bench.schema}.task to ${role}`,
    )
    onTestFinished(async () => void (await bench.sql(`drop owned by ${role}`, `drop role ${role}`)))
    const address = new URL(url)
    address.username = role
    address.password = 'secret'
    const facts = await factsOf(bench.schema, address.href)
    expect(facts.find(({ check }) => check === 'permissions')).toMatchObject({
      missing: expect.arrayContaining(['update on task', 'insert on key', 'delete on document']),
      how: expect.stringContaining(`to ${role}`),
    })
    const { stdout } = await folder.run(['doctor', '--url', `${address.href}?schema=${bench.schema}`])
    expect(stdout).toMatch(/^problem {2}permissions .*may not .*\n +→ grant usage on schema /m)
    expect(stdout).not.toContain('secret')
  })
})
