/** Triggers coalesced tasks of random keys, or runs them, and tells the witness of each trigger and each run. */
import { setTimeout as pause } from 'node:timers/promises'
import type { Plant } from '../planted.ts'
import { chance } from '../seed.ts'
import { openWitness } from '../witness.ts'
import { open, planOf, say } from './child.ts'

export interface CoalescerPlan {
  readonly file: string
  readonly folder: string
  readonly seed: number
  readonly keys: number
  /** 0: it runs tasks until it is told to stop. */
  readonly triggers: number
  readonly plant?: Plant
}

const { file, folder, seed, keys, triggers, plant = 'none' } = planOf<CoalescerPlan>()
const witness = openWitness(folder)
const { between } = chance(seed)
const client = await open(file, plant)
say('ready')
if (triggers > 0) {
  const lane = async (count: number): Promise<void> => {
    for (let i = 0; i < count; i++) {
      const key = `key-${between(0, keys - 1)}`
      witness('trigger', { key })
      const { id, coalesced } = await client.submit('work', { key }, { coalesce: { key } })
      witness('triggered', { key, task: id, coalesced })
    }
  }
  await Promise.all(Array.from({ length: 10 }, () => lane(triggers / 10)))
} else {
  const worker = client.worker({ concurrency: 10 }).handle('work', async (input, ctx) => {
    const { key } = input as { key: string }
    witness('start', { key, task: ctx.task.id, fence: ctx.fence })
    await pause(between(0, 5))
    return null
  })
  await worker.run()
}
await client.close()
say('stopped')
