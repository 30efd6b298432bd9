/**
 * pg-boss as fast as it goes: batches of 1,000 without returned ids, fetch and complete of 500, four loops beside each
 * other; LISTEN and NOTIFY for the latency. Its own work() loop waits between two fetches and was slower.
 */
import { createRequire } from 'node:module'
import { idleGap, payload, type System, timed } from '../system.ts'

/** The little of pg-boss that is used here: it is not installed when the types are checked. */
interface Boss {
  start(): Promise<unknown>
  stop(options: { graceful: boolean }): Promise<void>
  on(event: 'error' | 'warning', listener: (error: unknown) => void): void
  createQueue(name: string, options: { notify: boolean }): Promise<void>
  insert(name: string, jobs: readonly { data: unknown }[]): Promise<unknown>
  send(name: string, data: unknown): Promise<unknown>
  fetch(name: string, options: { batchSize: number }): Promise<{ id: string }[]>
  complete(name: string, ids: readonly string[]): Promise<unknown>
  work(name: string, handler: () => Promise<void>): Promise<string>
  offWork(name: string, options: { wait: boolean }): Promise<void>
}

interface PgBoss {
  readonly PgBoss: new (options: object) => Boss
}

const DRAINED = 'drained'
const NOTIFIED = 'notified'
const BATCH = 500
const LOOPS = 4

const handler = async (): Promise<void> => {}

export const pgBoss = async (): Promise<System> => {
  const require = createRequire(new URL('../peers/package.json', import.meta.url))
  const { PgBoss } = require('pg-boss') as PgBoss
  let boss: Boss

  /** Until nothing is left: resolves with how many were completed. */
  const loop = async (): Promise<number> => {
    for (let done = 0; ; ) {
      const jobs = await boss.fetch(DRAINED, { batchSize: BATCH })
      if (jobs.length === 0) return done
      await Promise.all(jobs.map(handler))
      await boss.complete(
        DRAINED,
        jobs.map(({ id }) => id),
      )
      done += jobs.length
    }
  }

  return {
    name: 'pg-boss',
    keeps: {
      durability: 'fsync per commit',
      lease: 'lock for 15 min, heartbeat on request; completed by id alone, no fence',
      history: 'none',
      rows: 'completed rows with output, for 7 days',
    },
    hasConcurrentCallers: true,

    async open({ database }) {
      boss = new PgBoss({ connectionString: database, supervise: false, schedule: false, useListenNotify: true })
      boss.on('error', (error) => console.error(error))
      await boss.start()
      await boss.createQueue(DRAINED, { notify: false })
      await boss.createQueue(NOTIFIED, { notify: true })
    },

    insertBatch: (count, perCall) =>
      timed(async () => {
        for (let start = 0; start < count; start += perCall) {
          await boss.insert(
            DRAINED,
            Array.from({ length: Math.min(perCall, count - start) }, (_, i) => ({ data: payload(start + i) })),
          )
        }
      }),

    async insertOne() {
      await boss.send(DRAINED, payload(0))
    },

    async drain(count) {
      let done = 0
      const took = await timed(async () => {
        const each = await Promise.all(Array.from({ length: LOOPS }, loop))
        done = each.reduce((sum, one) => sum + one, 0)
      })
      if (done !== count) throw new Error(`${done} of ${count} jobs were completed`)
      return took
    },

    async latency(count) {
      const samples: number[] = []
      let at = 0
      let started = (): void => {}
      await boss.work(NOTIFIED, async () => {
        samples.push(performance.now() - at)
        started()
      })
      for (let i = 0; i < count; i++) {
        await idleGap()
        const start = new Promise<void>((done) => (started = done))
        at = performance.now()
        await boss.send(NOTIFIED, payload(i))
        await start
      }
      await boss.offWork(NOTIFIED, { wait: true })
      return samples
    },

    close: () => boss.stop({ graceful: false }),
  }
}
