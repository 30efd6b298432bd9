/**
 * pg-boss driven by hand: inserts in batches, loops beside each other that fetch, run and complete a batch; LISTEN and
 * NOTIFY for the latency. Its own work() was no faster in burst mode, and much slower without. Fetches of 5,000 were about
 * a third faster than of 500.
 */
import { BATCH_SIZE, type Boss, LOOPS, makeBoss } from '../peer-libraries/pg-boss.ts'
import { idleGap, payload, type System, timed } from '../system.ts'

const DRAINED = 'drained'
const NOTIFIED = 'notified'
const handler = async (): Promise<void> => {}

export const pgBoss = (): Promise<System> => withBatches('pg-boss', BATCH_SIZE, LOOPS)

export const pgBossLargeBatches = (): Promise<System> => withBatches('pg-boss, batches of 5,000', 5_000, 2)

const withBatches = async (name: string, batchSize: number, loops: number): Promise<System> => {
  let boss: Boss

  /** Runs until nothing is left and resolves with the number of completed jobs. */
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
      boss = makeBoss(database)
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
      await boss.work(NOTIFIED, { batchSize: 1 }, async () => {
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
