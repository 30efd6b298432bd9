/** Operating on PostgreSQL: the read-only and the bulk verbs, as a user types them. */
import { expect, onTestFinished, test } from 'vitest'
import { connect, silentLogger } from '../../src/index.ts'
import { makeFolder } from '../cli/shell.ts'
import { freshSchema, runSql } from '../servers/schemas.ts'
import { onPostgres } from './setup.ts'

onPostgres('operating', (url) => {
  const folder = makeFolder()

  test('[L02] dead, replay, cancel, prune, pause, workers and why do what they do on a file', async () => {
    const schema = freshSchema()
    onTestFinished(async () => void (await runSql(url, `drop schema if exists ${schema} cascade`)))
    const env = { HOLDFAST_URL: `${url}?schema=${schema}` }
    const run = (...args: string[]) => folder.run(args, { env })
    await run('init')
    const client = await connect(url, { logger: silentLogger, name: 'test', postgres: { schema } })
    onTestFinished(() => client.close())
    for (const n of [1, 2, 3]) {
      const { id } = await client.submit('mail', n, { maxRetries: 0 })
      await (await client.claim(id, { workerId: 'w' })).fail(new Error(`user ${n} has no address`))
    }
    const { groups } = JSON.parse((await run('dead', '--groups', '--json')).stdout)
    expect(groups).toMatchObject([{ count: 3, pattern: 'user # has no address' }])
    expect((await run('replay', '--group', groups[0].fingerprint)).code).toBe(2)
    const [oldest] = (await client.deadLetters.list({ order: 'oldest' })).tasks
    expect((await run('replay', oldest!.id, '--as-new')).stdout).toMatch(`${oldest!.id} replayed as `)
    expect((await run('replay', '--all', '--yes')).stdout).toBe('replayed 2 tasks\n')
    expect((await run('cancel', '--type', 'mail', '--yes')).stdout).toBe('cancelled 3 tasks, asked 0 to stop\n')
    expect((await run('prune', '--older-than', '0', '--yes')).stdout).toBe('removed 3 tasks\n')
    expect((await client.get(oldest!.id)).status).toBe('archived')
    const { id } = await client.submit('mail', 4, { queue: 'post' })
    expect((await run('why', id)).stdout).toMatch(/no live worker is registered\.$/m)
    expect((await run('pause', 'post')).stdout).toBe('post paused\n')
    const worker = client
      .worker({ id: 'w1', queues: ['post'] })
      .handle('mail', () => {})
      .start()
    await expect.poll(async () => (await client.workers()).length).toBe(1)
    expect(JSON.parse((await run('workers', '--json')).stdout)).toMatchObject([{ id: 'w1', queues: ['post'] }])
    expect(JSON.parse((await run('why', id, '--json')).stdout)).toMatchObject({
      reason: 'queue-paused',
      workers: ['w1'],
    })
    expect((await run('resume', 'post')).stdout).toBe('post resumed\n')
    await client.waitForEnd(id, { timeout: '30s' })
    await worker.stop()
    expect((await run('workers')).stderr).toMatch(/no live workers\n$/)
  })
})
