/** The Python worker of examples/python, against a server of its own on SQLite. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createHttpHandler, EVERYTHING, listen, Tokens } from '../../src/http/index.ts'
import { type Client, connect, silentLogger } from '../../src/index.ts'
import { TOKEN } from './setup.ts'

const hasPython = spawnSync('python3', ['--version']).status === 0

/** A server, and as many Python workers as asked for. */
const begin = async (count: number): Promise<{ client: Client; workers: readonly ChildProcess[] }> => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-python-'))
  const client = await connect(`sqlite:${join(folder, 'q.db')}`, { logger: silentLogger })
  const { authorize } = new Tokens([{ token: TOKEN, rights: EVERYTHING }])
  const server = await listen(createHttpHandler(client, { authorize }), { host: '127.0.0.1', port: 0 })
  const workers = Array.from({ length: count }, () =>
    spawn('python3', [join(import.meta.dirname, '../../examples/python/worker.py')], {
      env: { ...process.env, HOLDFAST_SERVER: `http://127.0.0.1:${server.port}`, HOLDFAST_TOKEN: TOKEN },
      stdio: ['ignore', 'pipe', 'inherit'],
    }),
  )
  onTestFinished(async () => {
    for (const worker of workers) worker.kill('SIGKILL')
    await server.close()
    await client.close()
    rmSync(folder, { recursive: true })
  })
  return { client, workers }
}

/** How many of these tasks were held at the same time at the most, by what their histories say. */
const mostAtOnce = async (client: Client, ids: readonly string[]): Promise<number> => {
  const histories = await Promise.all(ids.map((id) => client.history(id)))
  const changes = histories.flat().flatMap(({ move, at }) => {
    if (move === 'claim') return [{ at, by: 1 }]
    return move === 'complete' ? [{ at, by: -1 }] : []
  })
  // What ends and what begins in the same millisecond do not overlap.
  changes.sort((a, b) => a.at - b.at || a.by - b.by)
  let [held, most] = [0, 0]
  for (const { by } of changes) {
    held += by
    most = Math.max(most, held)
  }
  return most
}

const runAll = async (client: Client, inputs: readonly object[]): Promise<string[]> => {
  const tasks = await Promise.all(inputs.map((input) => client.submit('rest', input, { group: 'acme' })))
  await Promise.all(tasks.map((task) => client.wait(task)))
  return tasks.map(({ id }) => id)
}

describe.skipIf(!hasPython)(
  hasPython ? 'a worker in Python' : 'a worker in Python (skipped: there is no python3 on this machine)',
  { timeout: 60_000 },
  () => {
    it('completes, fails for good, and stops when asked', async () => {
      const { client, workers } = await begin(1)
      const sums = await Promise.all([1, 2, 3].map((a) => client.submit('add', { a, b: 10 })))
      expect(await Promise.all(sums.map((task) => client.wait(task)))).toEqual([11, 12, 13])
      const paid = await client.waitForEnd(await client.submit('pay', { amount: 5 }))
      expect(paid).toMatchObject({
        status: 'failed',
        attempts: 1,
        lastError: { name: 'Permanent', message: 'cannot pay 5' },
      })
      workers[0]!.kill('SIGTERM')
      expect(await once(workers[0]!, 'exit')).toEqual([0, null])
    })

    it('runs a task of two steps with a sleep and a signal between them, over several runs', async () => {
      const { client } = await begin(1)
      const task = await client.submit('order', { amount: 5, pause: '100ms' })
      await expect
        .poll(async () => (await client.get(task.id)).parked, { timeout: 30_000 })
        .toMatchObject({ kind: 'signal', signal: 'approved' })
      await client.signal(task.id, 'approved', { by: 'ann' })
      expect(await client.wait(task)).toEqual({ receipt: `${task.id}:charge`, approved_by: 'ann' })
      expect(await client.get(task.id)).toMatchObject({
        attempts: 3,
        retryCount: 0,
        steps: [
          { name: 'charge', kind: 'step', value: { amount: 5 } },
          { name: 'cool-down', kind: 'sleep', status: 'done' },
          { name: 'approved', kind: 'signal', status: 'done', value: { by: 'ann' } },
          { name: 'ship', kind: 'step' },
        ],
      })
    })

    it.each([[{ concurrency: 1 }], [{ perGroup: 1 }]])(
      'obeys %j: two of them never hold two tasks, which they do without it',
      async (limit) => {
        const { client } = await begin(2)
        await expect.poll(async () => (await client.workers()).length, { timeout: 30_000 }).toBe(2)
        const free = await runAll(client, [{ seconds: 2 }, { seconds: 2 }])
        expect(await mostAtOnce(client, free)).toBe(2)
        await client.queue('default').limit(limit)
        const limited = await runAll(
          client,
          Array.from({ length: 10 }, () => ({ seconds: 0.05 })),
        )
        expect(await mostAtOnce(client, limited)).toBe(1)
      },
    )
  },
)
