/**
 * plainjob on better-sqlite3, as fast as its documentation makes it: no logger, and one worker in the process that
 * inserts. Four workers, or one in each of two processes, were not faster: they wait for the same write lock.
 */
import { join } from 'node:path'
import { requirePeer } from '../peer-libraries/require.ts'
import { idleGap, payload, type System, timed } from '../system.ts'

/** The part of plainjob and better-sqlite3 that is used here. They are not installed when the types are checked. */
interface Queue {
  add(type: string, data: unknown): unknown
  addMany(type: string, data: unknown[]): unknown
  countJobs(filter: { status: number }): number
  close(): void
}

interface Worker {
  start(): Promise<void>
  stop(): Promise<void>
}

interface Plainjob {
  readonly JobStatus: { readonly Done: number }
  better(database: unknown): unknown
  defineQueue(options: { connection: unknown; logger: typeof SILENT }): Queue
  defineWorker(
    type: string,
    run: (job: unknown) => Promise<void>,
    options: { queue: Queue; logger: typeof SILENT; pollIntervall?: number; onCompleted?: () => void },
  ): Worker
}

const SILENT = { error() {}, warn() {}, info() {}, debug() {} }
const TYPE = 'noop'
/** The shortest poll interval that it accepts. It has no wake-up, so a quick start costs idle CPU. */
const POLL = 1

export const plainjob = async (): Promise<System> => {
  const { better, defineQueue, defineWorker, JobStatus } = requirePeer('plainjob') as Plainjob
  const Database = requirePeer('better-sqlite3') as new (path: string) => unknown
  let queue: Queue
  let inserted = 0

  return {
    name: 'plainjob',
    keeps: {
      durability: 'no fsync per commit (WAL, NORMAL)',
      lease: 'none; stuck jobs are requeued after 30 min',
      history: 'none',
      rows: 'done rows, no output',
    },
    hasConcurrentCallers: false,

    async open({ dir }) {
      queue = defineQueue({ connection: better(new Database(join(dir, 'plainjob.db'))), logger: SILENT })
    },

    insertBatch: (count, perCall) =>
      timed(() => {
        for (let start = 0; start < count; start += perCall) {
          queue.addMany(
            TYPE,
            Array.from({ length: Math.min(perCall, count - start) }, (_, i) => payload(start + i)),
          )
        }
      }),

    async insertOne() {
      queue.add(TYPE, payload(inserted++))
    },

    async drain(count) {
      let done = 0
      let finished = (): void => {}
      const all = new Promise<void>((resolve) => (finished = resolve))
      const onCompleted = (): void => {
        if (++done === count) finished()
      }
      const worker = defineWorker(TYPE, async () => {}, { queue, logger: SILENT, onCompleted })
      const took = await timed(() => {
        void worker.start()
        return all
      })
      await worker.stop()
      const total = queue.countJobs({ status: JobStatus.Done })
      if (total !== count) throw new Error(`${total} of ${count} jobs were done`)
      return took
    },

    async latency(count) {
      const samples: number[] = []
      let start = 0
      let ended = (): void => {}
      const run = async (): Promise<void> => void samples.push(performance.now() - start)
      const worker = defineWorker(TYPE, run, { queue, logger: SILENT, pollIntervall: POLL, onCompleted: () => ended() })
      void worker.start()
      for (let i = 0; i < count; i++) {
        await idleGap()
        const end = new Promise<void>((done) => (ended = done))
        start = performance.now()
        queue.add(TYPE, payload(i))
        await end
      }
      await worker.stop()
      return samples
    },

    async idle(ms) {
      const worker = defineWorker(TYPE, async () => {}, { queue, logger: SILENT, pollIntervall: POLL })
      void worker.start()
      const took = await timed(() => new Promise((done) => setTimeout(done, ms)))
      await worker.stop()
      return took
    },

    async close() {
      queue.close()
    },
  }
}
