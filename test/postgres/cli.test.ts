/** The command line on PostgreSQL, as a user types it. */
import { expect, onTestFinished, test } from 'vitest'
import { makeFolder } from '../cli/shell.ts'
import { freshSchema, runSql } from '../servers/schemas.ts'
import { onPostgres } from './setup.ts'

onPostgres('the command line', (url) => {
  const folder = makeFolder()
  const addressOf = (schema: string): string => `${url}?schema=${schema}`

  const schemaForTest = (): string => {
    const schema = freshSchema()
    onTestFinished(async () => void (await runSql(url, `drop schema if exists ${schema} cascade`)))
    return schema
  }

  test('init makes the schema that the address names, once', async () => {
    const schema = schemaForTest()
    const [first, second] = [
      await folder.run(['init', addressOf(schema)]),
      await folder.run(['init', addressOf(schema), '--json']),
    ]
    expect(first).toMatchObject({ code: 0, stdout: expect.stringContaining('created a store at postgres://') })
    expect(JSON.parse(second.stdout)).toMatchObject({ created: false })
    const tables = await runSql(url, `select count(*)::int as n from pg_tables where schemaname = '${schema}'`)
    expect(tables[0]!['n']).toBeGreaterThan(3)
  })

  test('no other verb makes one: a typo in an address must not look like an empty queue', async () => {
    const schema = schemaForTest()
    for (const args of [['submit', '-t', 'work', '-i', '1'], ['stats'], ['migrate']]) {
      const { code, stderr } = await folder.run([...args, '--url', addressOf(schema)])
      expect(code).toBe(5)
      expect(stderr).toContain('holdfast init')
    }
  })

  test('submit, worker, status and history do what they do on a file', async () => {
    const schema = schemaForTest()
    const env = { HOLDFAST_URL: addressOf(schema) }
    await folder.run(['init'], { env })
    folder.write('tasks.mjs', 'export const double = (input) => input * 2')
    const submitted = await folder.run(['submit', '-t', 'double', '-i', '21'], { env })
    const id = submitted.stdout.trim()
    expect((await folder.run(['worker', './tasks.mjs', '--drain'], { env })).code).toBe(0)
    expect((await folder.run(['status', id], { env })).stdout).toMatch(/^output: 42$/m)
    expect((await folder.run(['history', id], { env })).stdout).toMatch(/^Version 3: completed/m)
  })

  test('migrate upgrades what the application may not, and says when there is nothing to do', async () => {
    const schema = schemaForTest()
    await folder.run(['init', addressOf(schema)])
    expect((await folder.run(['migrate', addressOf(schema)])).stdout).toMatch(/ is up to date\n$/)
    await runSql(url, `update ${schema}.meta set value = '99' where name = 'schema_version'`)
    const { code, stderr } = await folder.run(['migrate', addressOf(schema)])
    expect(code).toBe(5)
    expect(stderr).toContain('SCHEMA_NEWER')
  })
})
