/** Several worker processes on one queue, at the distance of a real S3. */
import { expect, onTestFinished, test } from 'vitest'
import { connect, silentLogger } from '../../../src/index.ts'
import { startSimulatedS3 } from '../../servers/simulated-s3/start.ts'
import { WorkerProcesses } from './processes.ts'

const TASKS = 2_000

test('no accepted task ends without having run, however many workers want it', { timeout: 180_000 }, async () => {
  const s3 = await startSimulatedS3({ latency: 30 })
  onTestFinished(() => s3.remove())
  const { url, bucket, credentials } = s3.fresh()
  const client = await connect(url, { create: true, logger: silentLogger, s3: { credentials } })
  const items = Array.from({ length: TASKS }, () => ({ type: 'a', input: { at: Date.now() }, maxRetries: 0 }))
  await client.submitMany(items)
  await client.close()
  await s3.reset()
  const settings = { url, credentials, queues: ['default'], types: ['a'], concurrency: 10, duration: 0 }
  const workers = await WorkerProcesses.start(4, settings)
  onTestFinished(() => workers.kill())
  const reports = await workers.untilEnded(TASKS, 150_000)
  const tasks = Object.values(await s3.objects(bucket, 'tasks/')).map((text) => JSON.parse(text).task)
  expect(tasks.filter(({ status }) => status !== 'completed')).toEqual([])
  expect(reports.reduce((sum, { started }) => sum + started, 0)).toBe(TASKS)
  // They keep out of each other's way: what is read is mostly claimed.
  const reads = (await s3.rows()).filter(({ kind, folder }) => kind === 'GET' && folder === 'tasks')
  expect(reads.reduce((sum, { count }) => sum + count, 0)).toBeLessThan(2 * TASKS)
})
