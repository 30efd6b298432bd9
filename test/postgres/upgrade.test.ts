/** Tables of the version before, with tasks in them, become those of this one. */
import { expect, test } from 'vitest'
import { openPostgres } from '../../src/store/postgres/store.ts'
import { begin, onPostgres } from './setup.ts'

onPostgres('tables of an earlier version', (url) => {
  /** As version 1 left them: what later versions made is taken away again. */
  const older = async () => {
    const bench = begin(url)
    const client = await bench.connect()
    const { id } = await client.submit('work', { n: 1 }, { idempotencyKey: 'k', tags: { of: 'before' } })
    await client.close()
    await bench.sql(
      `drop index ${bench.schema}.task_moved`,
      `drop function ${bench.schema}.claim`,
      `update ${bench.schema}.meta set value = '1' where name = 'schema_version'`,
    )
    return { ...bench, id }
  }
  const facts = ({ sql, schema }: Pick<ReturnType<typeof begin>, 'sql' | 'schema'>) =>
    sql(
      `select (select value from ${schema}.meta where name = 'schema_version') as version, to_regclass('${schema}.task_moved') is not null as moved`,
    )

  test('are brought up to date by ten that connect at once, and every task lives on', async () => {
    const bench = await older()
    const clients = await Promise.all(Array.from({ length: 10 }, () => bench.connect()))
    expect(await facts(bench)).toEqual([{ version: '3', moved: true }])
    await clients[0]!
      .worker()
      .handle('work', () => 'done')
      .drain()
    expect(await clients[1]!.get(bench.id)).toMatchObject({
      status: 'completed',
      output: 'done',
      tags: { of: 'before' },
    })
    expect(await clients[2]!.submit('work', { n: 1 }, { idempotencyKey: 'k' })).toMatchObject({
      id: bench.id,
      deduplicated: true,
    })
  })

  test('are refused, and left alone, where the application may not change them', async () => {
    const bench = await older()
    await expect(openPostgres(url, { schema: bench.schema, migrate: false })).rejects.toMatchObject({
      code: 'SCHEMA_OLDER',
      message: expect.stringContaining('holdfast migrate'),
    })
    expect(await facts(bench)).toEqual([{ version: '1', moved: false }])
  })

  test('stay as they were when bringing them up to date fails half-way', async () => {
    const bench = await older()
    // A view in the way of the index's name: the migration fails after it has begun.
    await bench.sql(`create view ${bench.schema}.task_moved as select 1 as n`)
    await expect(openPostgres(url, { schema: bench.schema })).rejects.toThrow(/task_moved/)
    expect((await facts(bench))[0]).toMatchObject({ version: '1' })
    await bench.sql(`drop view ${bench.schema}.task_moved`)
    await (await bench.connect()).close()
    expect(await facts(bench)).toEqual([{ version: '3', moved: true }])
  })
})
