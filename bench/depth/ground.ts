/** The databases of the scenarios: each is built once, and every run has a copy. */
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { Client } from '../../src/index.ts'
import { claimValues, levelValues } from '../../src/store/postgres/claim/claim-values.ts'
import { claimText } from '../../src/store/postgres/claim/claimer.ts'
import { startPostgres } from '../../test/servers/postgres.ts'
import { createDatabase, onServer } from '../database.ts'
import { payload } from '../system.ts'
import { loadHoldfast } from '../systems/holdfast.ts'
import type { Field } from '../systems.ts'
import { crowdStatements, type Dialect, HANDLED, type Scenario, SEED } from './scenarios.ts'

export interface Ground {
  make(scenario: Scenario): Promise<void>
  /** The address of a fresh copy, valid until `use` is done. */
  withCopy<T>(scenario: Scenario, use: (address: string) => Promise<T>): Promise<T>
  /** How the claim's statement is executed there. */
  explain(scenario: Scenario): Promise<string>
  remove(): Promise<void>
}

export const grounds: Readonly<Record<Field, () => Promise<Ground>>> = {
  sqlite: async () => onSqlite(),
  postgres: () => onPostgres(),
}

const withSeed = async (address: string): Promise<void> => {
  const { connect, silentLogger } = await loadHoldfast()
  const client: Client = await connect(address, { create: true, logger: silentLogger })
  await client.submit(SEED, payload(0))
  await client.close()
}

const SQLITE: Dialect = {
  table: 'holdfast_task',
  series: (count) =>
    `(with recursive s(n) as (select 1 union all select n + 1 from s where n < ${count}) select n from s)`,
  id: (n) => `printf('00000000-0000-7000-8000-%012x', ${n})`,
}

const onSqlite = (): Ground => {
  const dir = mkdtempSync(join(tmpdir(), 'holdfast-depth-'))
  const fileOf = ({ name }: Scenario): string => join(dir, `${name}.db`)
  return {
    async make(scenario) {
      await withSeed(`sqlite:${fileOf(scenario)}`)
      const db = new DatabaseSync(fileOf(scenario))
      for (const statement of crowdStatements(scenario, SQLITE, Date.now())) db.exec(statement)
      db.exec('analyze')
      // Moves everything into the one file that is copied.
      db.exec('pragma wal_checkpoint(truncate)')
      db.close()
    },
    async withCopy(scenario, use) {
      const folder = mkdtempSync(join(dir, 'copy-'))
      try {
        cpSync(fileOf(scenario), join(folder, 'copy.db'))
        return await use(`sqlite:${join(folder, 'copy.db')}`)
      } finally {
        rmSync(folder, { recursive: true, force: true })
      }
    },
    explain: async () => 'only on PostgreSQL',
    remove: async () => rmSync(dir, { recursive: true, force: true }),
  }
}

const POSTGRES: Dialect = {
  table: 'holdfast.task',
  series: (count) => `generate_series(1, ${count}) as s(n)`,
  id: (n) => `('00000000-0000-7000-8000-' || lpad(to_hex(${n}), 12, '0'))::uuid`,
}

const onPostgres = async (): Promise<Ground> => {
  const server = await startPostgres()
  const urls = new Map<string, string>()
  let copies = 0
  return {
    async make(scenario) {
      const { url } = await createDatabase(server.url, scenario.name)
      urls.set(scenario.name, url)
      await withSeed(url)
      await onServer(url, async (client) => {
        for (const statement of crowdStatements(scenario, POSTGRES, Date.now())) await client.query(statement)
        await client.query('analyze')
      })
    },
    async withCopy({ name }, use) {
      const copy = await createDatabase(server.url, `copy_${++copies}`, name)
      try {
        return await use(copy.url)
      } finally {
        await copy.drop()
      }
    },
    explain: ({ name }) => explained(urls.get(name)!),
    remove: () => server.remove(),
  }
}

/** The plans of the statements inside the claim function, as auto_explain reports them. */
const explained = async (url: string): Promise<string> => {
  const want = { queue: 'default', types: [HANDLED], limit: 100, workerId: 'w', op: 'op', leaseTtl: 5_000 }
  return onServer(url, async (client) => {
    const plans: string[] = []
    client.on('notice', ({ message }) => plans.push(message ?? ''))
    await client.query(`load 'auto_explain'; set auto_explain.log_min_duration = 0; set auto_explain.log_nested_statements = on;
      set auto_explain.log_analyze = on; set auto_explain.log_buffers = on; set client_min_messages = log; begin`)
    await client.query(claimText('holdfast'), [
      ...claimValues({ ...want, dueLimit: 0, now: null }),
      ...levelValues(null),
    ])
    await client.query('rollback')
    return plans.join('\n\n')
  })
}
