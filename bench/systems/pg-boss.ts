/**
 * pg-boss driven by hand: inserts in batches, loops beside each other that fetch, run and complete a batch; LISTEN and
 * NOTIFY for the latency. Its own work() was no faster in burst mode, and much slower without. Fetches of 5,000 were about
 * a third faster than of 500.
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
const handler = async (): Promise<void> => {}

export const pgBoss = (): Promise<System> => withBatches('pg-boss', 500, 4)

export const pgBossLargeBatches = (): Promise<System> => withBatches('pg-boss, batches of 5,000', 5_000, 2)

const withBatches = async (name: string, batchSize: number, loops: number): Promise<System> => {
  const require = createRequire(new URL('../peers/package.json', import.meta.url))
  const { PgBoss } = require('pg-boss') as PgBoss
  let boss: Boss

  /** Until nothing is left: resolves with how many were completed. */
  const loop = async (): Promise<number> => {
    for (let done = 0; ; ) {
      const jobs = await boss.fetch(DRAINED, { batchSize })
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
    name,
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
        const each = await Promise.all(Array.from({ length: loops }, loop))
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
