/** handleMany on every store: outcomes of their own, long batches whose leases are renewed, batches of a worker that vanished, limits. */
import { describe, expect, it } from 'vitest'
import { type Client, connect, type SubmitOptions, silentLogger, type Task, type Worker } from '../src/index.ts'
import { keptOpen } from './runtime/setup.ts'
import { stores } from './stores.ts'

const SLOW = 120_000

const submitAll = async (client: Client, count: number, options: (i: number) => SubmitOptions = () => ({})) => {
  const results = await client.submitMany(
    Array.from({ length: count }, (_, i) => ({ type: 'insert', input: i, maxRetries: 0, ...options(i) })),
  )
  return results.map((result) => {
    if (!result.ok) throw result.error
    return result.task.id
  })
}

const read = (client: Client, ids: readonly string[]): Promise<Task[]> => Promise.all(ids.map((id) => client.get(id)))

const ended = (client: Client, ids: readonly string[]) =>
  Promise.all(ids.map((id) => client.waitForEnd(id, { timeout: '60s' })))

for (const { name, open } of stores) {
  // At once: most of their time is a lease that must end, or a batch that must outlast one.
  describe.concurrent(`batches on ${name}`, () => {
    if (typeof open === 'string') {
      it('is tried', (context) => context.skip(`${name} could not be started: ${open}`))
      return
    }

    const withClients = async (
      work: (client: Client, other: Client, runs: (worker: Worker) => Worker) => Promise<void>,
    ): Promise<void> => {
      const store = await open()
      const clients = await Promise.all([0, 1].map(() => connect(keptOpen(store), { logger: silentLogger })))
      const workers: Worker[] = []
      const runs = (worker: Worker): Worker => {
        workers.push(worker)
        return worker.start()
      }
      try {
        await work(clients[0]!, clients[1]!, runs)
      } finally {
        for (const worker of workers) await worker.stop({ timeout: 0 })
        for (const client of clients) await client.close()
        await store.close()
      }
    }

    it('each task gets its own outcome, with its own fence and history', { timeout: SLOW }, () =>
      withClients(async (client, _, runs) => {
        const ids = await submitAll(client, 25)
        const worker = client
          .worker({ concurrency: 2 })
          .handleMany('insert', { size: 10 }, (tasks, ctx) =>
            tasks.map((task) => (Number(task.input) % 5 === 0 ? new Error('odd one') : { fence: ctx.of(task).fence })),
          )
        runs(worker)
        await ended(client, ids)
        const tasks = await read(client, ids)
        expect(tasks.map(({ status }) => status)).toEqual(
          tasks.map(({ input }) => (Number(input) % 5 === 0 ? 'failed' : 'completed')),
        )
        expect(tasks.filter(({ status }) => status === 'completed').map(({ output }) => output)).toEqual(
          Array(20).fill({ fence: 1 }),
        )
        for (const { history, status } of tasks)
          expect(history.map(({ move }) => move)).toEqual([
            'submit',
            'claim',
            status === 'failed' ? 'fail' : 'complete',
          ])
      }),
    )

    it('a batch that takes longer than a lease keeps all of its leases', { timeout: SLOW }, () =>
      withClients(async (client, other, runs) => {
        const ids = await submitAll(client, 8)
        for (const one of [client, other])
          runs(
            one.worker({ concurrency: 1, leaseTtl: '2s' }).handleMany('insert', { size: 8 }, async (tasks) => {
              // Longer than the lease, which is what this is about.
              await new Promise((done) => setTimeout(done, 5_000))
              return tasks.map(() => null)
            }),
          )
        await ended(client, ids)
        expect((await read(client, ids)).map(({ status, attempts }) => [status, attempts])).toEqual(
          Array(8).fill(['completed', 1]),
        )
      }),
    )

    it('tasks of a batch count one by one under a limit of their group', { timeout: SLOW }, () =>
      withClients(async (client, other, runs) => {
        await client.queue('default').limit({ perGroup: 2 })
        // So that the other process knows the limit from its first claim on.
        await other.queue('default').limits()
        const ids = await submitAll(client, 24, (i) => ({ group: `g${i % 3}` }))
        const running = new Map<string, number>()
        let most = 0
        for (const one of [client, other])
          runs(
            one.worker({ concurrency: 2 }).handleMany('insert', { size: 6 }, async (tasks) => {
              for (const { group } of tasks) running.set(group!, (running.get(group!) ?? 0) + 1)
              most = Math.max(most, ...running.values())
              await new Promise((done) => setTimeout(done, 20))
              for (const { group } of tasks) running.set(group!, running.get(group!)! - 1)
              return tasks.map(() => null)
            }),
          )
        await ended(client, ids)
        expect(most).toBe(2)
      }),
    )

    it('the batch of a worker that stopped at once comes back, each task once', { timeout: SLOW }, () =>
      withClients(async (client, other, runs) => {
        const ids = await submitAll(client, 10, () => ({ maxRetries: 3 }))
        const begun = Promise.withResolvers<void>()
        const hung = client.worker({ concurrency: 1, leaseTtl: '3s' }).handleMany('insert', { size: 10 }, async () => {
          begun.resolve()
          return new Promise<never>(() => {})
        })
        runs(hung)
        await begun.promise
        await hung.stop({ timeout: 0 })
        const seen: unknown[] = []
        runs(
          other.worker({ concurrency: 1 }).handleMany('insert', { size: 4 }, (tasks) => {
            seen.push(...tasks.map(({ input }) => input))
            return tasks.map(() => 'second')
          }),
        )
        await ended(client, ids)
        expect(seen.toSorted((a, b) => Number(a) - Number(b))).toEqual(Array.from({ length: 10 }, (_, i) => i))
        expect((await read(client, ids)).map(({ output, attempts }) => [output, attempts])).toEqual(
          Array(10).fill(['second', 2]),
        )
      }),
    )
  })
}
