/** A worker with nothing to do, and how much of the processor that takes. */
import { setTimeout as pause } from 'node:timers/promises'
import { open, planOf, say } from './child.ts'

export interface IdlerPlan {
  readonly file: string
  readonly pollInterval?: string
  /** Milliseconds of quiet before the measuring begins, and of measuring. */
  readonly settles: number
  readonly measures: number
}

const { file, pollInterval, settles, measures } = planOf<IdlerPlan>()
const client = await open(file)
client
  .worker(pollInterval === undefined ? {} : { pollInterval })
  .handle('work', () => null)
  .start()
await pause(settles)
const before = process.cpuUsage()
const begun = performance.now()
await pause(measures)
const { user, system } = process.cpuUsage(before)
say('measured', { share: (user + system) / 1000 / (performance.now() - begun) })
await client.close()
