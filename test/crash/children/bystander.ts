/** Uses the store while somebody else has its write lock, and measures how long its own event loop stood still. */
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { DatabaseSync } from 'node:sqlite'
import { open, planOf, say } from './child.ts'

export interface BystanderPlan {
  readonly file: string
  /** The control: write on the event loop's own thread, as most embedded queues do. */
  readonly onMainThread?: boolean
}

const { file, onMainThread = false } = planOf<BystanderPlan>()
const client = await open(file)

const useStore = async (): Promise<void> => {
  const tasks = await Promise.all(Array.from({ length: 20 }, (_, i) => client.submit('work', i)))
  const lease = await client.claimNext({ workerId: 'bystander' })
  await lease!.complete('done')
  const ended = await client.get(lease!.task.id)
  if (ended.status !== 'completed' || tasks.length !== 20) throw new Error(`the task is ${ended.status}`)
}

const useFile = (): void => {
  const db = new DatabaseSync(file, { timeout: 10_000 })
  db.exec('begin immediate; rollback')
  db.close()
}

// Once for nothing, so that what is measured is not the loading of modules.
await useStore()
const delay = monitorEventLoopDelay({ resolution: 1 })
const go = new Promise<void>((done) => process.once('SIGUSR2', () => done()))
const alive = setInterval(() => {}, 60_000)
say('ready')
await go
clearInterval(alive)
delay.enable()
// The histogram begins with its first sample.
await new Promise((done) => setTimeout(done, 20))
const begun = performance.now()
if (onMainThread) useFile()
else await useStore()
const took = performance.now() - begun
await new Promise((done) => setTimeout(done, 20))
delay.disable()
say('done', { took, longest: delay.max / 1e6 })
await client.close()
