/** Its handler never yields: the event loop stands still for several lease lengths. */
import type { Plant } from '../planted.ts'
import { open, planOf, say, standStill } from './child.ts'

export interface BlockerPlan {
  readonly file: string
  readonly leaseTtl: string
  readonly blocks: number
  readonly plant?: Plant
}

const { file, leaseTtl, blocks, plant = 'none' } = planOf<BlockerPlan>()
const client = await open(file, plant)
const hooks = {
  onTaskEnd: (_: unknown, error: { code?: unknown } | null) => say('ended', { code: error?.code ?? 'written' }),
}
const worker = client.worker({ concurrency: 1, leaseTtl, hooks }).handle('work', (_, ctx) => {
  say('started')
  standStill(blocks)
  return { fence: ctx.fence, pid: process.pid }
})
say('ready')
await worker.run()
await client.close()
