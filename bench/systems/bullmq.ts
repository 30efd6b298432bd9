/** BullMQ on a Redis without persistence: addBulk, 100 jobs at once, completed ones removed. */
import { type BullMq, JOBS_AT_ONCE, loadBullMq, type Queue, type Worker } from '../peer-libraries/bullmq.ts'
import { idleGap, payload, type System, timed } from '../system.ts'

const NAME = 'noop'

export const bullMq = async (): Promise<System> => {
  let library: BullMq
  let queue: Queue

  const start = async (concurrency: number, run: () => Promise<void>, completed: () => void): Promise<Worker> => {
    const worker = await library.makeWorker(NAME, concurrency, run)
    worker.on('completed', completed)
    worker.run().catch((error: unknown) => console.error(error))
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
      library = loadBullMq(redis)
      queue = await library.makeQueue(NAME)
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
