/** A connection that says what each statement read. */
import pg from 'pg'
import { onTestFinished } from 'vitest'
import type { Executor, PgRow } from '../../src/store/postgres/connection.ts'

export interface Reads {
  /** Entries that indexes gave, and rows that were walked without one. */
  readonly rows: number
  /** Blocks of the table and its indexes, found in memory or not. */
  readonly blocks: number
}

const COUNTERS = `
  select sum(pg_stat_get_xact_tuples_returned(oid))::int as rows, sum(pg_stat_get_xact_blocks_fetched(oid))::int as blocks
  from (select indexrelid as oid from pg_index where indrelid = $1::regclass union all select $1::regclass) x`

/** A connection of its own, so a plan of its own, that says what each statement read. */
export const watched = async (url: string, schema: string): Promise<{ executor: Executor; reads: Reads[] }> => {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  onTestFinished(() => client.end())
  const reads: Reads[] = []
  const counters = async (): Promise<Reads> => (await client.query<Reads>(COUNTERS, [`${schema}.task`])).rows[0]!
  const executor: Executor = {
    async query(text, values) {
      await client.query('begin')
      const before = await counters()
      const { rows } = await client.query<PgRow>({ text, values: values as unknown[], rowMode: 'array' })
      const after = await counters()
      await client.query('commit')
      reads.push({ rows: after.rows - before.rows, blocks: after.blocks - before.blocks })
      return rows
    },
    script: () => Promise.reject(new Error('not used')),
  }
  return { executor, reads }
}
