/** The command line on a bucket: a look costs a handful of reads, and needs no right to write. */
import { afterAll, expect, onTestFinished, test } from 'vitest'
import { connect, silentLogger } from '../../src/index.ts'
import { countsOf, startSimulatedS3 } from '../servers/simulated-s3/start.ts'
import { Folder } from './shell.ts'

const s3 = await startSimulatedS3({ latency: 0, rights: { reader: ['s3:GetObject', 's3:ListBucket'] } })
afterAll(() => s3.remove())

test('status, list, stats and why write nothing, and a role that may only read can use them', async () => {
  const { url, credentials } = s3.fresh('admin')
  const client = await connect(url, { create: true, logger: silentLogger, s3: { credentials } })
  onTestFinished(() => client.close())
  const { id } = await client.submit('a', 1)
  const folder = new Folder()
  const env = { AWS_ACCESS_KEY_ID: 'reader', AWS_SECRET_ACCESS_KEY: 's' }
  const run = async (...args: readonly string[]) => {
    await s3.reset()
    const ran = await folder.run([...args, '--url', url], { env })
    return { ...ran, counts: countsOf(await s3.rows(), ({ by }) => by === 'reader') }
  }
  const status = await run('status', id)
  expect(status).toMatchObject({ code: 0, stdout: expect.stringContaining(id) })
  // Two to connect, the task, and why it waits: whether its queue is paused and who serves it.
  expect(status.counts.PUT + status.counts.DELETE).toBe(0)
  expect(status.counts.GET + status.counts.LIST).toBeLessThanOrEqual(8)
  for (const args of [['list'], ['stats'], ['why', id], ['history', id], ['dead']]) {
    const ran = await run(...args)
    expect(ran, args.join(' ')).toMatchObject({ code: 0, counts: { PUT: 0, DELETE: 0 } })
  }
  // Nor does it need a proof, which it could not give.
  await s3.change({ faults: [{ what: 'status', kind: 'GET', key: 'proof/', status: 404, code: 'NoSuchKey' }] })
  expect(await run('status', id)).toMatchObject({ code: 0, stdout: expect.stringContaining(id) })
  await s3.change({ faults: [] })
  const refused = await run('submit', '--type', 'a', '--input', '1', '--json')
  expect(refused.code).toBe(5)
  const { error } = JSON.parse(refused.stderr) as { error: { code: string; message: string; fix: string } }
  expect(error).toMatchObject({ code: 'STORE_READ_ONLY', message: expect.stringContaining('s3:PutObject') })
  expect(error.fix).not.toMatch(/owner|file and/)
})
