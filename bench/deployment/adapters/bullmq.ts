/** BullMQ with one queue and several job names, as its documentation recommends; several queues only where the cell has them. */
import {
  type BullMq,
  type Worker as BullWorker,
  JOBS_AT_ONCE,
  type Job,
  type JobOptions,
  loadBullMq,
} from '../../peer-libraries/bullmq.ts'
import { type Adapter, RETRY_DELAY_MS, type WorkerEvents } from '../adapter.ts'
import { type Input, queuesOf, type Task } from '../tasks.ts'

const optionsOf = (task: Task, isMixed: boolean): JobOptions => ({
  // 0 is before all priorities, so the highest has none.
  ...(isMixed && task.priority < 2 && { priority: 2 - task.priority }),
  ...(task.delayMs !== null && { delay: task.delayMs }),
  ...(task.input.fails && { attempts: 4, backoff: { type: 'fixed', delay: RETRY_DELAY_MS } as const }),
})

export const bullMq = (): Adapter => ({
  async openProducer({ place, shape }) {
    const { makeQueue } = loadBullMq(place.redis)
    const queues = new Map(
      await Promise.all(queuesOf(shape).map(async (name) => [name, await makeQueue(name)] as const)),
    )
    return {
      destinationOf: ({ queue }) => queue,
      async submitMany(tasks) {
        const jobs = tasks.map((task) => ({
          name: task.type,
          data: task.input,
          opts: optionsOf(task, shape.isMixed),
        }))
        await queues.get(tasks[0]!.queue)!.addBulk(jobs)
      },
      async submit(task) {
        await queues.get(task.queue)!.add(task.type, task.input, optionsOf(task, shape.isMixed))
      },
      async countUnfinished() {
        const counts = await Promise.all([...queues.values()].map((queue) => queue.getJobCounts()))
        return counts.flatMap(Object.values).reduce((sum: number, one: number) => sum + one, 0)
      },
      close: async () => void (await Promise.all([...queues.values()].map((queue) => queue.close()))),
    }
  },

  async openWorker({ place, shape }) {
    const library = loadBullMq(place.redis)
    const names = queuesOf(shape)
    let events: WorkerEvents
    const make = (): Promise<readonly BullWorker<Input>[]> => connected(library, names, () => events)
    let workers = await make()
    let isUsed = false
    const close = async (): Promise<void> => void (await Promise.all(workers.map((worker) => worker.close())))
    return {
      async start(heard) {
        events = heard
        // A closed worker cannot run again.
        if (isUsed) workers = await make()
        isUsed = true
        for (const worker of workers) worker.run().catch((error: unknown) => console.error(error))
      },
      stop: close,
      close,
    }
  },
})

/** A worker for each queue, which share the concurrency of the process. */
const connected = (
  { makeWorker }: BullMq,
  names: readonly string[],
  events: () => WorkerEvents,
): Promise<readonly BullWorker<Input>[]> => {
  const concurrency = Math.ceil(JOBS_AT_ONCE / names.length)
  const run = async ({ data, attemptsMade }: Job<Input>): Promise<void> => events().started(data, attemptsMade === 0)
  return Promise.all(
    names.map(async (name) => {
      const worker = await makeWorker<Input>(name, concurrency, run)
      worker.on('completed', ({ attemptsMade }) => events().ended(attemptsMade === 1, true))
      worker.on('failed', ({ attemptsMade }) => events().ended(attemptsMade === 1, false))
      return worker
    }),
  )
}
