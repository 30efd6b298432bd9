/** Tables of the version before, with tasks in them, become those of this one. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { SCHEMA_VERSION } from '../../src/store/postgres/schema.ts'
import { openPostgres } from '../../src/store/postgres/store.ts'
import { expectFixture } from '../fixture.ts'
import { begin, onPostgres } from './setup.ts'

/** Version 1 was never released. */
const VERSIONS = Array.from({ length: SCHEMA_VERSION - 2 }, (_, n) => n + 2)

onPostgres('tables of an earlier version', (url) => {
  /** A schema with what a dump of that version holds. */
  const restored = async (version: number) => {
    const bench = begin(url)
    const dump = readFileSync(new URL(`./fixtures/schema-${version}.sql`, import.meta.url), 'utf8')
    await bench.sql(dump.replaceAll('{schema}', bench.schema))
    return bench
  }
  const facts = ({ sql, schema }: Pick<ReturnType<typeof begin>, 'sql' | 'schema'>) =>
    sql(
      `select (select value from ${schema}.meta where name = 'schema_version') as version, exists (select 1 from pg_proc p where p.pronamespace = '${schema}'::regnamespace and p.proname in ('claim', 'claim_in_order')) as claim`,
    )

  for (const version of VERSIONS) {
    test(`are upgraded from version ${version} by ten that connect at once, with everything in them`, async () => {
      const bench = await restored(version)
      const clients = await Promise.all(Array.from({ length: 10 }, () => bench.connect({ create: false })))
      await expectFixture(clients[0]!)
    })

    test(`are after version ${version} the same as new ones`, async () => {
      const [old, fresh] = [await restored(version), begin(url)]
      for (const bench of [old, fresh]) await (await bench.connect()).close()
      expect(await catalogue(old)).toEqual(await catalogue(fresh))
    })
  }

  test('are refused, and left alone, where the application may not change them', async () => {
    const bench = await restored(2)
    await expect(openPostgres(url, { schema: bench.schema, migrate: false })).rejects.toMatchObject({
      code: 'SCHEMA_OLDER',
      message: expect.stringContaining('holdfast migrate'),
    })
    expect(await facts(bench)).toEqual([{ version: '2', claim: false }])
  })

  test('stay as they were when the upgrade fails half-way', async () => {
    const bench = await restored(2)
    // A view in the way of an index's name: the migration fails after it has begun.
    await bench.sql(`drop index ${bench.schema}.task_live`, `create view ${bench.schema}.task_live as select 1 as n`)
    await expect(openPostgres(url, { schema: bench.schema })).rejects.toThrow(/task_live/)
    expect(await facts(bench)).toEqual([{ version: '2', claim: false }])
    await bench.sql(
      `drop view ${bench.schema}.task_live`,
      `create index task_live on ${bench.schema}.task (queue) where status = 'none'`,
    )
    await (await bench.connect()).close()
    expect(await facts(bench)).toEqual([{ version: String(SCHEMA_VERSION), claim: true }])
  })
})

type Own = Pick<ReturnType<typeof begin>, 'sql' | 'schema'>

/** Columns, indexes and functions, without the name of the schema. */
const catalogue = async ({ sql, schema }: Own): Promise<readonly string[]> => {
  const rows = await sql(`
    select c.relname || ' ' || a.attname || ' ' || format_type(a.atttypid, a.atttypmod) || coalesce(' ' || pg_get_expr(d.adbin, d.adrelid), '') || a.attnotnull as what
      from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
      where c.relnamespace = '${schema}'::regnamespace and c.relkind = 'r'
    union all select pg_get_indexdef(i.indexrelid) from pg_index i join pg_class c on c.oid = i.indrelid where c.relnamespace = '${schema}'::regnamespace
    union all select pg_get_functiondef(p.oid) from pg_proc p where p.pronamespace = '${schema}'::regnamespace`)
  return rows.map(({ what }) => String(what).replaceAll(`"${schema}"`, schema).replaceAll(schema, 'schema')).sort()
}
