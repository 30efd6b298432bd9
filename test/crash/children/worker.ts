/** Runs tasks and tells the witness when a run begins and ends, until it is told to stop or killed. */
import { setTimeout as pause } from 'node:timers/promises'
import type { Plant } from '../planted.ts'
import { chance } from '../seed.ts'
import { openWitness } from '../witness.ts'
import { open, planOf, say } from './child.ts'

export interface WorkerPlan {
  readonly file: string
  readonly folder: string
  readonly seed: number
  readonly workers?: number
  readonly concurrency?: number
  readonly leaseTtl?: string
  /** A run takes a random time from the first to the second, in milliseconds. */
  readonly takes: readonly [number, number]
  /** Wait for SIGUSR2 before working, so that several processes begin together. */
  readonly barrier?: boolean
  readonly queues?: readonly string[]
  readonly plant?: Plant
}

const plan = planOf<WorkerPlan>()
const {
  file,
  folder,
  seed,
  takes,
  workers = 1,
  concurrency = 1,
  leaseTtl = '1s',
  barrier = false,
  queues = ['default'],
  plant = 'none',
} = plan
const witness = openWitness(folder)
const { between } = chance(seed)
const client = await open(file, plant)
const go = new Promise<void>((done) => process.once('SIGUSR2', () => done()))

say('ready')
// A signal alone does not keep a process alive.
const alive = setInterval(() => {}, 60_000)
if (barrier) await go
clearInterval(alive)

await Promise.all(
  Array.from({ length: workers }, () => {
    const hooks = {
      onTaskEnd: (task: { id: string; attempts: number }, error: { code?: unknown } | null) => {
        if (error) witness('unwritten', { task: task.id, fence: task.attempts, code: error.code })
      },
    }
    const worker = client.worker({ concurrency, leaseTtl, hooks, queues: [...queues] })
    worker.handle('work', async (_, ctx) => {
      const facts = { task: ctx.task.id, fence: ctx.fence, worker: ctx.workerId }
      witness('start', facts)
      await pause(between(...takes))
      witness('end', facts)
      return { fence: ctx.fence, pid: process.pid }
    })
    return worker.run()
  }),
)
await client.close()
say('stopped')
