/**
 * graphile-worker with what its performance page offers: a local queue, batched completion, 24 jobs at once, and add_jobs
 * for batches. The size of the local queue decides: with 5,000 it drained about twice as fast as with 500, at the price of
 * as many jobs locked by one process. 10,000, 100 jobs at once, or completions that wait longer for each other were not
 * clearly faster.
 */

import { EventEmitter } from 'node:events'
import { createRequire } from 'node:module'
import { idleGap, payload, type System, timed } from '../system.ts'

/** The little of graphile-worker that is used here: it is not installed when the types are checked. */
interface GraphileWorker {
  readonly Logger: new (factory: () => () => void) => unknown
  run(options: {
    preset: { worker: object }
    taskList: Record<string, () => Promise<void>>
    parsedCronItems: []
  }): Promise<Runner>
  makeWorkerUtils(options: { preset: { worker: object } }): Promise<Utils>
}

interface Runner {
  stop(): Promise<void>
}

interface Utils {
  migrate(): Promise<void>
  addJob(type: string, payload: unknown): Promise<unknown>
  addJobs(jobs: readonly { identifier: string; payload: unknown }[]): Promise<unknown>
  withPgClient<T>(
    use: (client: { query(sql: string): Promise<{ rows: { count: string }[] }> }) => Promise<T>,
  ): Promise<T>
  release(): Promise<void>
}

const TYPE = 'noop'
const JOBS_AT_ONCE = 24

export const graphileWorker = (): Promise<System> => withLocalQueue('graphile-worker', 500)

export const graphileWorkerLargeQueue = (): Promise<System> =>
  withLocalQueue('graphile-worker, local queue of 5,000', 5_000)

const withLocalQueue = async (name: string, size: number): Promise<System> => {
  const require = createRequire(new URL('../peers/package.json', import.meta.url))
  const { Logger, run, makeWorkerUtils } = require('graphile-worker') as GraphileWorker
  const logger = new Logger(() => () => {})
  let settings: { worker: object }
  let utils: Utils

  const start = (events: EventEmitter, localQueue: object | null, task: () => Promise<void>): Promise<Runner> =>
    run({
      preset: { worker: { ...settings.worker, ...localQueue, events } },
      taskList: { [TYPE]: task },
      parsedCronItems: [],
    })

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
      settings = {
        worker: {
          connectionString: database,
          logger,
          concurrentJobs: JOBS_AT_ONCE,
          maxPoolSize: JOBS_AT_ONCE + 2,
          completeJobBatchDelay: 0,
          failJobBatchDelay: 0,
        },
      }
      utils = await makeWorkerUtils({ preset: settings })
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
        const runner = await start(events, { localQueue: { size } }, async () => {})
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
