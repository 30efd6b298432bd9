/** Runs tasks of three types until it is killed: the first runs of a `hold` never end, a `nap` sleeps again and again, a `quick` ends at once. */
import { open, planOf, say } from './child.ts'

export interface HolderPlan {
  readonly file: string
  readonly concurrency: number
  /** So many runs of a `hold` do not end. */
  readonly holds?: number
  /** How long a `nap` sleeps. */
  readonly nap?: string
  readonly leaseTtl?: string
}

const { file, concurrency, holds = 1, nap = '500ms', leaseTtl } = planOf<HolderPlan>()
const client = await open(file)
const worker = client.worker({ concurrency, ...(leaseTtl === undefined ? null : { leaseTtl }) })
worker.handle('hold', async (_, ctx) => {
  say('holds', { task: ctx.task.id, attempt: ctx.attempt, at: Date.now() })
  if (ctx.attempt <= holds) await new Promise(() => {})
})
worker.handle('nap', (_, ctx) => {
  say('naps', { task: ctx.task.id, attempt: ctx.attempt, at: Date.now() })
  return ctx.reschedule(nap)
})
worker.handle('quick', (_, ctx) => {
  say('ran', { task: ctx.task.id })
  return null
})
worker.start()
say('ready')
