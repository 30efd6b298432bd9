/**
 * graphile-worker, with a local queue or without. It has no queues that run several jobs at once, so each pair of queue and
 * type is a task identifier of its own.
 */
import { EventEmitter } from 'node:events'
import { type Job, type JobSpec, loadGraphileWorker, type Runner } from '../../peer-libraries/graphile-worker.ts'
import type { Adapter } from '../adapter.ts'
import { type Input, pairsOf, type Task } from '../tasks.ts'

const identifierOf = ({ queue, type }: Pick<Task, 'queue' | 'type'>): string => `${queue}/${type}`

const specOf = (task: Task): JobSpec => ({
  identifier: identifierOf(task),
  payload: task.input,
  ...(task.priority > 0 && { priority: -task.priority }),
  ...(task.delayMs !== null && { runAt: new Date(Date.now() + task.delayMs) }),
})

/** `localQueue`: jobs that a process fetches ahead; null: none. */
export const graphileWorker = (localQueue: number | null): Adapter => ({
  async openProducer({ place }) {
    const utils = await loadGraphileWorker(place.database).makeUtils()
    await utils.migrate()
    return {
      destinationOf: () => '',
      submitMany: async (tasks) => void (await utils.addJobs(tasks.map(specOf))),
      submit: async (task) => void (await utils.addJob(identifierOf(task), task.input)),
      async countUnfinished() {
        const { rows } = await utils.withPgClient((client) => client.query('select count(*) from graphile_worker.jobs'))
        return Number(rows[0]!.count)
      },
      close: () => utils.release(),
    }
  },

  async openWorker({ place, shape }) {
    const library = loadGraphileWorker(place.database)
    // Connected before the clock starts, as the other systems are.
    const pool = await library.openPool()
    let runner: Runner
    return {
      async start({ started, ended }) {
        const events = new EventEmitter()
        events.on('job:complete', ({ job, error }: { readonly job: Job; readonly error: unknown }) =>
          ended(job.attempts === 1, !error),
        )
        const handler = async (input: Input, { job }: { readonly job: Job }): Promise<void> =>
          started(input, job.attempts === 1)
        const taskList = Object.fromEntries(pairsOf(shape).map((pair) => [identifierOf(pair), handler]))
        runner = await library.run({ events, localQueue, taskList, pool })
      },
      stop: () => runner.stop(),
      close: () => pool.end(),
    }
  },
})
