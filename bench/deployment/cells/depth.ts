/** The first tasks that a worker runs, with few and with very many waiting. */
import type { Servers } from '../../servers.ts'
import { turns } from '../../turns.ts'
import { withCrew } from '../crew.ts'
import type { FigureName, Figures } from '../figures.ts'
import { type Ground, type Listener, settle, withCopy, withGround } from '../ground.ts'
import { micros } from '../serve.ts'
import type { DeployedSystem } from '../systems.ts'
import type { Shape } from '../tasks.ts'

export interface Depth {
  readonly shape: Shape
  readonly few: number
  readonly many: number
  /** How many of them are run and timed. */
  readonly first: number
}

const PER_CALL = 1_000

/** Each store is filled once; every run has a copy of it. Returns the figures of each run. */
export const runDepth = (
  servers: Servers,
  system: DeployedSystem,
  { shape, few, many, first }: Depth,
  runs: number,
  listener: Listener,
): Promise<readonly Figures[]> =>
  withGround(servers, system, listener, (withFew) =>
    withGround(servers, system, listener, async (withMany) => {
      await fill(withFew, shape, few)
      await fill(withMany, shape, many)
      const sides: readonly (readonly [FigureName, Ground])[] = [
        ['tasks/s with few waiting', withFew],
        ['tasks/s with many waiting', withMany],
      ]
      const measured: Figures[] = []
      for (let run = 0; run < runs; run++) {
        const figures: Partial<Record<FigureName, number>> = {}
        for (const [name, ground] of turns(sides, run))
          figures[name] = await withCopy(ground, (copy) => rateOfFirst(copy, shape, first))
        measured.push(figures)
      }
      return measured
    }),
  )

const fill = async (ground: Ground, shape: Shape, count: number): Promise<void> => {
  await withCrew(ground, { shape, processes: 0, isLive: false, hasProducer: true }, ({ producer }) =>
    producer.call('insert', { count, perCall: PER_CALL }),
  )
  await settle(ground)
}

const rateOfFirst = (ground: Ground, shape: Shape, first: number): Promise<number> =>
  withCrew(ground, { shape, processes: 1, isLive: false, hasProducer: false }, async ({ workers, progress }) => {
    const worker = workers[0]!
    const startedAt = micros()
    await Promise.all([worker.call('go', { mark: first }), progress(({ ended }) => ended >= first)])
    await worker.call('finish')
    const markAt = await worker.call('markAt')
    return first / ((markAt! - startedAt) / 1_000_000)
  })
