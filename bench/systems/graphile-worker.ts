/**
 * graphile-worker with what its performance page offers: a local queue, batched completion, 24 jobs at once, and add_jobs
 * for batches. The size of the local queue decides: with 5,000 it drained about twice as fast as with 500, at the price of
 * as many jobs locked by one process. 10,000, 100 jobs at once, or completions that wait longer for each other were not
 * clearly faster.
 */

import { EventEmitter } from 'node:events'
import { type GraphileWorker, loadGraphileWorker, type Runner, type Utils } from '../peer-libraries/graphile-worker.ts'
import { idleGap, payload, type System, timed } from '../system.ts'

const TYPE = 'noop'

export const graphileWorker = (): Promise<System> => withLocalQueue('graphile-worker', 500)

export const graphileWorkerLargeQueue = (): Promise<System> =>
  withLocalQueue('graphile-worker, local queue of 5,000', 5_000)

const withLocalQueue = async (name: string, size: number): Promise<System> => {
  let library: GraphileWorker
  let utils: Utils

  const start = (events: EventEmitter, localQueue: number | null, task: () => Promise<void>): Promise<Runner> =>
    library.run({ events, localQueue, taskList: { [TYPE]: task } })

  return {
    name,
    keeps: {
      durability: 'fsync per commit',
      lease: 'lock for 4 hours, no heartbeat, no fence',
      history: 'none',
      rows: 'deleted on success',
    },
    hasConcurrentCallers: true,

    async open({ database }) {
      library = loadGraphileWorker(database)
      utils = await library.makeUtils()
      await utils.migrate()
    },

    insertBatch: (count, perCall) =>
      timed(async () => {
        for (let start = 0; start < count; start += perCall) {
          await utils.addJobs(
            Array.from({ length: Math.min(perCall, count - start) }, (_, i) => ({
              identifier: TYPE,
              payload: payload(start + i),
            })),
          )
        }
      }),

    async insertOne() {
      await utils.addJob(TYPE, payload(0))
    },

    async drain(count) {
      let left = count
      let ran = (): void => {}
      const all = new Promise<void>((resolve) => (ran = resolve))
      const events = new EventEmitter()
      events.on('job:complete', () => {
        if (--left === 0) ran()
      })
      const took = await timed(async () => {
        const runner = await start(events, size, async () => {})
        await all
        // The event comes before the last batch of completions is written; stopping waits for it.
        await runner.stop()
      })
      const { rows } = await utils.withPgClient((client) => client.query('select count(*) from graphile_worker.jobs'))
      if (Number(rows[0]!.count) !== 0) throw new Error(`${rows[0]!.count} of ${count} jobs are left`)
      return took
    },

    async latency(count) {
      const samples: number[] = []
      let at = 0
      let ended = (): void => {}
      const events = new EventEmitter()
      events.on('job:complete', () => ended())
      const runner = await start(events, null, async () => void samples.push(performance.now() - at))
      for (let i = 0; i < count; i++) {
        await idleGap()
        const end = new Promise<void>((done) => (ended = done))
        at = performance.now()
        await utils.addJob(TYPE, payload(i))
        await end
      }
      await runner.stop()
      return samples
    },

    close: () => utils.release(),
  }
}
