/**
 * pg-boss with one queue for each type (and for each pair of queue and type where there are several queues). Waiting jobs
 * are fetched and completed in batches by hand, which is faster than its work(); jobs that come one by one wake its work()
 * by LISTEN and NOTIFY.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { BATCH_SIZE, type Boss, type Job, LOOPS, makeBoss } from '../../peer-libraries/pg-boss.ts'
import { type Adapter, RETRY_DELAY_MS, type Worker, type WorkerEvents } from '../adapter.ts'
import { type Input, pairsOf, type Task } from '../tasks.ts'

/** The pause after all queues were empty: its own poll interval is no shorter. */
const POLL_MS = 500

const nameOf = ({ queue, type }: Pick<Task, 'queue' | 'type'>): string => `${queue}.${type}`

const optionsOf = (task: Task) => ({
  ...(task.priority > 0 && { priority: task.priority }),
  ...(task.delayMs !== null && { startAfter: new Date(Date.now() + task.delayMs) }),
})

export const pgBoss = (): Adapter => ({
  async openProducer({ place, shape, isLive }) {
    const boss = makeBoss(place.database)
    await boss.start()
    for (const pair of pairsOf(shape))
      await boss.createQueue(nameOf(pair), {
        notify: isLive,
        ...(shape.isMixed && { retryDelay: Math.round(RETRY_DELAY_MS / 1_000) }),
      })
    return {
      destinationOf: nameOf,
      async submitMany(tasks) {
        const jobs = tasks.map((task) => ({ data: task.input, ...optionsOf(task) }))
        await boss.insert(nameOf(tasks[0]!), jobs)
      },
      submit: async (task) => void (await boss.send(nameOf(task), task.input)),
      async countUnfinished() {
        const { rows } = await boss
          .getDb()
          .executeSql("select count(*) from pgboss.job where state::text <> 'completed'")
        return Number(rows[0]!.count)
      },
      close: () => boss.stop({ graceful: false }),
    }
  },

  async openWorker({ place, shape, isLive }) {
    const boss = makeBoss(place.database)
    await boss.start()
    const names = pairsOf(shape).map(nameOf)
    return isLive ? wokenWorker(boss, names) : batchWorker(boss, names)
  },
})

const wokenWorker = (boss: Boss, names: readonly string[]): Worker => ({
  async start({ started }) {
    for (const name of names)
      await boss.work<Input>(name, { batchSize: BATCH_SIZE }, async (jobs) => {
        for (const { data, retryCount } of jobs) started(data, retryCount === 0)
      })
  },
  stop: async () => void (await Promise.all(names.map((name) => boss.offWork(name, { wait: true })))),
  close: () => boss.stop({ graceful: false }),
})

const batchWorker = (boss: Boss, names: readonly string[]): Worker => {
  let stopping = new AbortController()
  let loops: Promise<void>[] = []

  const runBatch = async (name: string, jobs: readonly Job<Input>[], { started, ended }: WorkerEvents) => {
    const completed: Job[] = []
    const failed: Job[] = []
    for (const job of jobs) {
      try {
        started(job.data, job.retryCount === 0)
        completed.push(job)
      } catch {
        failed.push(job)
      }
    }
    const idsOf = (some: readonly Job[]): string[] => some.map(({ id }) => id)
    if (completed.length > 0) await boss.complete(name, idsOf(completed))
    if (failed.length > 0) await boss.fail(name, idsOf(failed))
    for (const { retryCount } of completed) ended(retryCount === 0, true)
    for (const { retryCount } of failed) ended(retryCount === 0, false)
  }

  return {
    async start(events) {
      stopping = new AbortController()
      const { signal } = stopping
      // Shared by the loops: a queue that one of them found empty is skipped until all are empty.
      let nonEmpty = [...names]
      const loop = async (): Promise<void> => {
        while (!signal.aborted) {
          const name = nonEmpty.shift()
          if (name === undefined) {
            await sleep(POLL_MS, null, { signal }).catch(() => {})
            if (nonEmpty.length === 0) nonEmpty = [...names]
            continue
          }
          // Moved to the end before the fetch, so that with one queue all loops work on it.
          nonEmpty.push(name)
          const jobs = await boss.fetch<Input>(name, { batchSize: BATCH_SIZE })
          if (jobs.length === 0) nonEmpty = nonEmpty.filter((other) => other !== name)
          else await runBatch(name, jobs, events)
        }
      }
      loops = Array.from({ length: LOOPS }, loop)
    },
    async stop() {
      stopping.abort()
      await Promise.all(loops)
    },
    close: () => boss.stop({ graceful: false }),
  }
}
