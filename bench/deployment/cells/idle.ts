/** An idle worker. */
import { setTimeout as sleep } from 'node:timers/promises'
import { withCrew } from '../crew.ts'
import type { Figures } from '../figures.ts'
import type { Ground } from '../ground.ts'
import type { Shape } from '../tasks.ts'

export interface Idle {
  readonly shape: Shape
  /** After the start, before anything is measured. */
  readonly settleMs: number
  readonly ms: number
}

export const runIdle = (ground: Ground, { shape, settleMs, ms }: Idle): Promise<Figures> =>
  withCrew(ground, { shape, processes: 1, isLive: true, hasProducer: true }, async (crew) => {
    const { workers, meter } = crew
    const worker = workers[0]!
    await crew.dismissProducer()
    await worker.call('go', { mark: null })
    await sleep(settleMs)
    const before = await meter.read()
    const { cpuPercent, rssMegabytes } = await worker.call('rest', { ms })
    const after = await meter.read()
    await worker.call('finish')
    return {
      'CPU of one core': cpuPercent,
      RSS: rssMegabytes,
      ...(before.cpuSeconds !== null &&
        after.cpuSeconds !== null && {
          'server CPU of one core': ((after.cpuSeconds - before.cpuSeconds) / (ms / 1_000)) * 100,
        }),
    }
  })
