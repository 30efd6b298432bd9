/** BullMQ on a Redis without persistence: addBulk, 100 jobs at once, completed ones removed. */
import { createRequire } from 'node:module'
import { idleGap, payload, type System, timed } from '../system.ts'

/** The little of BullMQ that is used here: it is not installed when the types are checked. */
interface Queue {
  add(name: string, data: unknown): Promise<unknown>
  addBulk(jobs: readonly { name: string; data: unknown }[]): Promise<unknown>
  getJobCounts(): Promise<Record<string, number>>
  obliterate(options: { force: boolean }): Promise<void>
  close(): Promise<void>
}

interface Worker {
  on(event: 'completed', listener: () => void): void
  waitUntilReady(): Promise<unknown>
  close(): Promise<void>
}

interface BullMq {
  readonly Queue: new (name: string, options: object) => Queue
  readonly Worker: new (name: string, run: () => Promise<void>, options: object) => Worker
}

const NAME = 'noop'
const JOBS_AT_ONCE = 100

export const bullMq = async (): Promise<System> => {
  const require = createRequire(new URL('../peers/package.json', import.meta.url))
  const { Queue: MakeQueue, Worker: MakeWorker } = require('bullmq') as BullMq
  let connection: object
  let queue: Queue

  const start = async (concurrency: number, run: () => Promise<void>, completed: () => void): Promise<Worker> => {
    const worker = new MakeWorker(NAME, run, { connection, concurrency, removeOnComplete: { count: 0 } })
    worker.on('completed', completed)
    await worker.waitUntilReady()
    return worker
  }

  return {
    name: 'bullmq',
    keeps: {
      durability: 'none: Redis without persistence',
      lease: 'lock of 30 s, heartbeat, token',
      history: 'none',
      rows: 'removed on success',
    },
    hasConcurrentCallers: true,

    async open({ redis }) {
      connection = { url: redis, maxRetriesPerRequest: null }
      queue = new MakeQueue(NAME, { connection, defaultJobOptions: { removeOnComplete: true } })
      await queue.getJobCounts()
    },

    insertBatch: (count, perCall) =>
      timed(async () => {
        for (let start = 0; start < count; start += perCall) {
          await queue.addBulk(
            Array.from({ length: Math.min(perCall, count - start) }, (_, i) => ({
              name: NAME,
              data: payload(start + i),
            })),
          )
        }
      }),

    async insertOne() {
      await queue.add(NAME, payload(0))
    },

    async drain(count) {
      let left = count
      let finished = (): void => {}
      const all = new Promise<void>((resolve) => (finished = resolve))
      let worker: Worker
      const took = await timed(async () => {
        worker = await start(
          JOBS_AT_ONCE,
          async () => {},
          () => {
            if (--left === 0) finished()
          },
        )
        await all
      })
      await worker!.close()
      const remaining = Object.values(await queue.getJobCounts()).reduce((sum, one) => sum + one, 0)
      if (remaining !== 0) throw new Error(`${remaining} of ${count} jobs are left`)
      return took
    },

    async latency(count) {
      const samples: number[] = []
      let at = 0
      let ended = (): void => {}
      const worker = await start(
        1,
        async () => void samples.push(performance.now() - at),
        () => ended(),
      )
      for (let i = 0; i < count; i++) {
        await idleGap()
        const end = new Promise<void>((done) => (ended = done))
        at = performance.now()
        await queue.add(NAME, payload(i))
        await end
      }
      await worker.close()
      return samples
    },

    async close() {
      await queue.obliterate({ force: true })
      await queue.close()
    },
  }
}
