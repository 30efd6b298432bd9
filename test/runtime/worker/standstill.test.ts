/** An event loop that stood still for longer than a lease does not lose its own tasks to itself. */
import { expect, test } from 'vitest'
import { connect, silentLogger, type WorkerOptions } from '../../../src/index.ts'

const LEASE = 200

/** Computes without yielding. */
const block = (ms: number): void => {
  const until = performance.now() + ms
  while (performance.now() < until);
}

const begin = async (options: WorkerOptions = {}) => {
  const client = await connect('memory:', { logger: silentLogger })
  return { client, worker: client.worker({ leaseTtl: `${LEASE}ms`, ...options }) }
}

test('a handler that computes for five lease lengths completes in one run on memory:, beside a second worker', async () => {
  const { client, worker } = await begin()
  const task = await client.submit('compute', null)
  worker.handle('compute', () => block(5 * LEASE)).start()
  client
    .worker({ leaseTtl: `${LEASE}ms` })
    .handle('other', () => {})
    .start()
  await client.wait(task)
  const { history, attempts } = await client.get(task.id)
  expect([attempts, history.map(({ move }) => move)]).toEqual([1, ['submit', 'claim', 'complete']])
  await client.close()
})

test('what waits behind it loses no retry', async () => {
  const { client, worker } = await begin({ concurrency: 1 })
  const tasks = await Promise.all([1, 2, 3, 4].map((n) => client.submit('compute', n)))
  worker.handle('compute', () => block(2 * LEASE)).start()
  for (const { id } of tasks) await client.wait(id)
  for (const { id } of tasks) {
    const { history, retryCount } = await client.get(id)
    expect([retryCount, history.map(({ move }) => move)]).toEqual([0, expect.not.arrayContaining(['lose-lease'])])
  }
  await client.close()
})

test('a handler that goes on after it has computed is not told that its lease is lost', async () => {
  const { client, worker } = await begin()
  const task = await client.submit('compute', null)
  worker
    .handle('compute', async (_, { signal }) => {
      block(5 * LEASE)
      // Several rounds of renewals.
      await new Promise((done) => setTimeout(done, LEASE))
      return signal.aborted
    })
    .start()
  expect(await client.wait(task)).toBe(false)
  await client.close()
})
