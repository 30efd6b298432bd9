/** Runs tasks of three types until it is killed: the first run of a `hold` never ends, a `nap` sleeps again and again, a `quick` ends at once. */
import { open, planOf, say } from './child.ts'

export interface HolderPlan {
  readonly file: string
  readonly concurrency: number
}

const { file, concurrency } = planOf<HolderPlan>()
const client = await open(file)
const worker = client.worker({ concurrency })
worker.handle('hold', async (_, ctx) => {
  say('holds', { task: ctx.task.id, attempt: ctx.attempt, at: Date.now() })
  if (ctx.attempt === 1) await new Promise(() => {})
})
worker.handle('nap', (_, ctx) => ctx.reschedule('500ms'))
worker.handle('quick', () => null)
worker.start()
say('ready')
