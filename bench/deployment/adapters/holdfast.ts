/** Holdfast with its defaults, but for the concurrency of 100. */
import { join } from 'node:path'
import type { Client, SubmitOptions } from '../../../src/index.ts'
import type { Place } from '../../system.ts'
import { loadHoldfast } from '../../systems/holdfast.ts'
import { type Adapter, RETRY_DELAY_MS } from '../adapter.ts'
import { queuesOf, type Shape, type Task, typesOf } from '../tasks.ts'

const CONCURRENCY = 100

export const holdfastPostgres = (): Adapter => holdfastAt(({ database }) => database)

export const holdfastSqlite = (): Adapter => holdfastAt(({ dir }) => `sqlite:${join(dir, 'holdfast.db')}`)

const holdfastAt = (addressOf: (place: Place) => string): Adapter => {
  const connect = async (place: Place): Promise<Client> => {
    const holdfast = await loadHoldfast()
    return holdfast.connect(addressOf(place), { create: true, logger: holdfast.silentLogger })
  }
  return {
    async openProducer({ place, shape }) {
      const client = await connect(place)
      return {
        destinationOf: () => '',
        async submitMany(tasks) {
          const results = await client.submitMany(
            tasks.map((task) => ({ type: task.type, input: task.input, ...optionsOf(task, shape) })),
          )
          for (const result of results) if (!result.ok) throw result.error
        },
        async submit(task) {
          await client.submit(task.type, task.input, optionsOf(task, shape))
        },
        async countUnfinished() {
          const unfinished = (['pending', 'running', 'failed', 'expired', 'cancelled'] as const).map(
            async (status) => (await client.count({ status }, { cap: 10_000_000 })).count,
          )
          return (await Promise.all(unfinished)).reduce((sum, count) => sum + count, 0)
        },
        close: () => client.close(),
      }
    },

    async openWorker({ place, shape }) {
      const client = await connect(place)
      let worker: ReturnType<Client['worker']>
      return {
        async start({ started, ended }) {
          worker = client.worker({
            concurrency: CONCURRENCY,
            queues: queuesOf(shape),
            hooks: {
              onTaskEnd(task, error) {
                // A run of the mix that fails on purpose has ended too; a result that was not written has not.
                if (error?.code === 'STALE_LEASE') console.error(error)
                else ended(task.attempts === 1, task.status === 'completed')
              },
            },
          })
          for (const type of typesOf(shape))
            worker.handle(type, (input, { attempt }) => started(input as Task['input'], attempt === 1))
          worker.start()
        },
        stop: () => worker.stop(),
        close: () => client.close(),
      }
    },
  }
}

/** Only what is not the default, as a user would write it. */
const optionsOf = (task: Task, { queues }: Shape): SubmitOptions => ({
  ...(queues > 1 && { queue: task.queue }),
  ...(task.priority > 0 && { priority: task.priority }),
  ...(task.ttlMs !== null && { ttl: `${task.ttlMs}ms` }),
  ...(task.delayMs !== null && { delay: `${task.delayMs}ms` }),
  ...(task.input.fails && { retryPolicy: { base: `${RETRY_DELAY_MS}ms`, jitter: 'none' } }),
})
