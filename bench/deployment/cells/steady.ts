/** Tasks submitted one by one at a rate, to a worker in another process: how long each waits for its handler. */
import { setTimeout as sleep } from 'node:timers/promises'
import { percentileOf } from '../../median.ts'
import { withCrew } from '../crew.ts'
import type { Figures } from '../figures.ts'
import type { Ground } from '../ground.ts'
import { GRACE_MS } from '../steady-load.ts'
import type { Shape } from '../tasks.ts'

export interface Steady {
  readonly shape: Shape
  readonly rate: number
  readonly seconds: number
}

/** Not measured, because connections are opened and code is compiled. */
const WARM_UP_SECONDS = 1
const LOOK_MS = 100

export const runSteady = (ground: Ground, { shape, rate, seconds }: Steady): Promise<Figures> =>
  withCrew(ground, { shape, processes: 1, isLive: true, hasProducer: true }, async ({ producer, workers }) => {
    const worker = workers[0]!
    await worker.call('go', { mark: null })
    const { startedAt, intended, errors, firstError } = await producer.call('steady', { rate, seconds })
    if (firstError !== null) ground.note(`${ground.system.name}, ${rate} a second, first error: ${firstError}.`)
    const accepted = intended - errors
    const deadline = performance.now() + GRACE_MS
    while ((await worker.call('waitCount')) < accepted && performance.now() < deadline) await sleep(LOOK_MS)
    const waits = await worker.call('waits')
    await worker.call('finish')
    const warmUp = Math.min(WARM_UP_SECONDS, seconds / 2) * 1_000_000
    const measured = waits.filter(([at]) => at >= startedAt + warmUp).map(([, wait]) => wait / 1_000)
    const notRun = Math.max(0, accepted - waits.length)
    // These waited longer than the limit; the exact time is unknown.
    for (let n = 0; n < notRun + errors; n++) measured.push(GRACE_MS)
    const at = (share: number): number => percentileOf(measured, share)
    return { p50: at(0.5), p95: at(0.95), p99: at(0.99), max: at(1), 'not run': notRun, errors }
  })
