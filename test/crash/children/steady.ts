/** A worker whose runs last until SIGUSR2: they are under way before, during and after an interruption. */
import { connect, silentLogger } from '../../../src/index.ts'
import { planOf, say } from './child.ts'

export interface SteadyPlan {
  readonly url: string
  readonly concurrency: number
  readonly leaseTtl: string
}

const { url, concurrency, leaseTtl } = planOf<SteadyPlan>()
const finish = new Promise<void>((done) => process.once('SIGUSR2', () => done()))
const client = await connect(url, { logger: silentLogger })
const worker = client.worker({ concurrency, leaseTtl }).handle('work', async (_, ctx) => {
  say('runs', { id: ctx.task.id, fence: ctx.fence })
  ctx.signal.addEventListener('abort', () => say('aborted', { id: ctx.task.id }))
  await finish
})
await worker.run()
await client.close()
