/**
 * A worker whose runs last until SIGUSR2: they are under way before, during and after an interruption, whatever their signal says. On a busy machine
 * that may take longer than handlers may ignore it.
 */
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
const worker = client.worker({ concurrency, leaseTtl, stuckAfter: '10m' }).handle('work', async (_, ctx) => {
  say('runs', { id: ctx.task.id, fence: ctx.fence })
  ctx.signal.addEventListener('abort', () => say('aborted', { id: ctx.task.id }))
  await finish
})
await worker.run()
await client.close()
