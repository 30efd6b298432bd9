/** The same numbers as in test/kv/requests.test.ts, as they leave this machine: what is charged for. */
import { expect, onTestFinished, test } from 'vitest'
import { connect, silentLogger } from '../../src/index.ts'
import { startStub } from './stub-server.ts'

test('a task costs 4 PUT, no more than 1 GET and 1 DELETE, and its share of the lists', async () => {
  const stub = await startStub()
  onTestFinished(() => stub.close())
  const counts = { PUT: 0, GET: 0, LIST: 0, DELETE: 0 }
  const client = await connect(`s3://bucket/jobs?endpoint=${stub.endpoint}`, {
    create: true,
    logger: silentLogger,
    s3: { credentials: { accessKeyId: 'a', secretAccessKey: 'b' }, onRequest: (kind) => counts[kind]++ },
  })
  onTestFinished(() => client.close())
  const worker = client.worker({ concurrency: 20 }).handle('a', async () => null)
  worker.start()
  await client.wait(await client.submit('a', null))
  const before = { ...counts }
  const TASKS = 100
  const results = await client.submitMany(Array.from({ length: TASKS }, () => ({ type: 'a', input: null })))
  for (const result of results) if (result.ok) await client.wait(result.task)
  await worker.stop()
  const own = { ...counts }
  // Waiting reads the task; everything else is the task's own.
  expect(own.PUT - before.PUT).toBeLessThanOrEqual(4 * TASKS + 5)
  expect(own.DELETE - before.DELETE).toBeLessThanOrEqual(TASKS)
  expect(own.LIST - before.LIST).toBeLessThanOrEqual(TASKS / 2)
  expect((await client.count({ status: 'completed' })).count).toBe(TASKS + 1)
})
