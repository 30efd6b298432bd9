/** Takes two tasks in one batch. The handler of the first never yields; it is said when each begins. */
import type { Plant } from '../planted.ts'
import { open, planOf, say, standStill } from './child.ts'

export interface BatchBlockerPlan {
  readonly file: string
  readonly leaseTtl: string
  readonly blocks: number
  readonly plant?: Plant
}

const { file, leaseTtl, blocks, plant = 'none' } = planOf<BatchBlockerPlan>()
const client = await open(file, plant)
const worker = client.worker({ concurrency: 2, leaseTtl }).handle('work', (input, ctx) => {
  say('began', { id: ctx.task.id, fence: ctx.fence, isAborted: ctx.signal.aborted, at: Date.now() })
  if (input !== 'first') return
  standStill(blocks)
  say('unblocked')
})
say('ready')
// A signal alone does not keep a process alive.
const alive = setInterval(() => {}, 60_000)
await new Promise<void>((done) => process.once('SIGUSR2', () => done()))
clearInterval(alive)
await worker.run()
await client.close()
