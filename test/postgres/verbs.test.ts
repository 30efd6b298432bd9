/** The verbs that look, the bulk verbs, schedules and the addresses in the help: the real program on PostgreSQL. */
import { createInterface } from 'node:readline'
import { expect, onTestFinished, test } from 'vitest'
import { SCHEDULE_VERBS } from '../../src/cli/program/schedule-verbs.ts'
import { VERBS } from '../../src/cli/program/verbs.ts'
import { exitOf, linesOf, makeFolder, normalised, type Ran } from '../cli/shell.ts'
import { freshSchema, runSql } from '../servers/schemas.ts'
import { begin, freshDatabase, onPostgres } from './setup.ts'

const words = (line: string): string[] =>
  [...line.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain!).slice(1)

onPostgres('verbs', (url) => {
  const folder = makeFolder()

  const open = async () => {
    const bench = begin(url)
    const client = await bench.connect()
    const env = { HOLDFAST_URL: `${url}?schema=${bench.schema}` }
    const run = (...args: string[]): Promise<Ran> => folder.run(args, { env })
    const json = async (...args: string[]) => JSON.parse((await run(...args, '--json')).stdout)
    return { client, env, run, json }
  }

  test('status, get, list, history and stats tell what they tell on a file', async () => {
    const { client, run, json } = await open()
    const { id } = await client.submit('mail', { to: 'ann' }, { tags: { team: 'blue' }, ttl: '1h' })
    await (await client.claim(id, { workerId: 'worker-1' })).reschedule('60s')
    const { id: dead } = await client.submit('report', 1, { maxRetries: 0, queue: 'slow' })
    await (await client.claim(dead, { workerId: 'worker-1' })).fail(new Error('boom'))
    const { stdout } = await run('status', id)
    expect(stdout).toMatch(/^reschedule_count: 1, max_reschedules: unlimited$/m)
    expect(stdout).toMatch(/^expires_at: \S+ \(in 59m \d+s|1h\)$/m)
    expect(normalised((await run('get', id)).stdout)).toBe(normalised(stdout))
    expect(normalised((await run('history', id)).stdout)).toBe(
      'Version 1: pending (created, expires_at: INSTANT)\nVersion 2: running (claimed by worker-1)\nVersion 3: pending (rescheduled, available_at: +60s, count: 1)\n',
    )
    expect((await json('list', '--tag', 'team=blue')).tasks).toMatchObject([{ id }])
    expect((await json('list', '--status', 'dead')).tasks).toMatchObject([{ id: dead }])
    expect(await json('stats')).toMatchObject([
      { queue: 'default', scheduled: 1 },
      { queue: 'slow', failed: 1 },
    ])
    expect((await run('status', '00000000-0000-7000-8000-000000000000')).code).toBe(3)
  })

  test('retry, archive, unarchive, delete and purge move what is named and nothing else', async () => {
    const { client, run } = await open()
    const die = async (n: number): Promise<string> => {
      const { id } = await client.submit('mail', n, { maxRetries: 0 })
      await (await client.claim(id, { workerId: 'w' })).fail(new Error(`user ${n} has no address`))
      return id
    }
    const [first, second, third] = [await die(1), await die(2), await die(3)]
    expect((await run('retry', first)).code).toBe(4)
    expect((await run('archive', first)).stdout).toBe(`${first} archived (was failed)\n`)
    expect((await run('unarchive', first)).stdout).toBe(`${first} failed\n`)
    expect((await run('delete', first)).stdout).toBe(`${first} deleted (was failed)\n`)
    expect((await run('purge', '--type', 'mail')).code).toBe(2)
    expect((await run('purge', second)).code).toBe(2)
    expect((await run('purge', second, '--yes')).stdout).toBe('purged 1 task\n')
    expect((await run('dead', '--json')).stdout).toContain(third)
    expect((await run('purge', '--all', '--yes')).stdout).toBe('purged 1 task\n')
    expect((await run('dead')).stderr).toMatch(/no dead letters\n$/)
  })

  test('a replay that is stopped by SIGINT goes on without a double', async () => {
    const { client, env, run } = await open()
    const submitted = await client.submitMany(
      Array.from({ length: 60 }, (_, n) => ({ type: 'mail', input: n })),
      { maxRetries: 0 },
    )
    expect(submitted.every(({ ok }) => ok)).toBe(true)
    await client
      .worker({ concurrency: 50 })
      .handle('mail', () => {
        throw new Error('boom')
      })
      .drain()
    const replaying = folder.start(['replay', '--all', '--yes', '--rate', '20'], { env })
    const ended = exitOf(replaying)
    await expect
      .poll(async () => (await client.count({ status: 'pending' })).count, { timeout: 10_000 })
      .toBeGreaterThan(0)
    replaying.kill('SIGINT')
    expect(await ended).toBe(130)
    const { count: left } = await client.count({ status: 'failed' })
    expect((await run('replay', '--all', '--yes')).stdout).toBe(`replayed ${left} tasks\n`)
    const { tasks } = await client.list({ limit: 1_000 })
    expect(tasks.map(({ replayCount }) => replayCount)).toEqual(Array(60).fill(1))
  })

  test('tail follows what another process does', async () => {
    const { client, env } = await open()
    const child = folder.start(['tail'], { env })
    const ended = exitOf(child)
    const begun = createInterface({ input: child.stderr! })
    await new Promise<void>((done) => begun.on('line', (line) => line.startsWith('following ') && done()))
    const { id } = await client.submit('mail', 1)
    expect(await linesOf(child).until(/./)).toContain(id)
    child.kill('SIGINT')
    expect(await ended).toBe(0)
  })

  test('every example of schedule works, one after the other', async () => {
    const { client, run, json } = await open()
    for (const example of SCHEDULE_VERBS[0]!.verbs!.flatMap(({ examples }) => examples))
      expect({ example, ...(await run(...words(example))) }).toMatchObject({ code: 0 })
    expect(await json('schedule', 'list')).toMatchObject([{ id: 'poll' }])
    // One was triggered.
    expect((await client.list()).tasks).toMatchObject([{ type: 'report' }])
  })

  test('the addresses in the help are such as it takes', async () => {
    const makers = VERBS.filter(({ name }) => name === 'init' || name === 'migrate')
    const examples = makers.flatMap(({ examples: lines }) => lines).filter((line) => line.includes('postgres://'))
    expect(examples).toHaveLength(2)
    const database = await freshDatabase(url)
    for (const example of examples) {
      const args = words(example).map((word) => word.replace(/^postgres:\/\/[^/]*\/app/, database))
      expect({ example, ...(await folder.run(args)) }).toMatchObject({ code: 0 })
    }
  })

  test('a schema that is not there is told, by every verb that only looks', async () => {
    const schema = freshSchema()
    onTestFinished(async () => void (await runSql(url, `drop schema if exists ${schema} cascade`)))
    for (const verb of ['list', 'stats', 'dead', 'workers', 'doctor', 'tail']) {
      const { code, stderr } = await folder.run([verb, '--url', `${url}?schema=${schema}`])
      expect({ verb, code, stderr }).toMatchObject({ code: 5, stderr: expect.stringContaining('STORE_NOT_FOUND') })
    }
  })
})
