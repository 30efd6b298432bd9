/** Waiting tasks, run by worker processes until the last end is written. */
import type { Reading } from '../../meter.ts'
import { type Crew, withCrew } from '../crew.ts'
import { type Figures, serverFigures } from '../figures.ts'
import type { Ground } from '../ground.ts'
import { micros } from '../serve.ts'
import { dueOf, type Shape } from '../tasks.ts'
import type { Counts, Finished } from '../worker-process.ts'

const PER_CALL = 1_000

export interface Drain {
  readonly shape: Shape
  readonly processes: number
  readonly tasks: number
}

export const runDrain = (ground: Ground, { shape, processes, tasks }: Drain): Promise<Figures> =>
  withCrew(ground, { shape, processes, isLive: false, hasProducer: true }, async (crew) => {
    const { producer, meter } = crew
    await producer.call('insert', { count: tasks, perCall: PER_CALL })
    const due = dueOf(shape, tasks)
    const before = await meter.read()
    const startedAt = micros()
    const finished = await work(crew, ({ ended }) => ended >= due)
    const figures = figuresOf(finished, startedAt, due, before, await meter.read())
    if (shape.isMixed) {
      // The second attempts are no part of the time measured, but they must succeed.
      await work(crew, ({ completed }) => completed >= due)
    }
    const unfinished = await producer.call('countUnfinished', tasks - due)
    if (unfinished !== tasks - due)
      throw new Error(`${unfinished} of ${tasks} tasks have not completed; ${tasks - due} were expected`)
    return figures
  })

/** Until the workers have done enough; then they stop. */
const work = async (
  { workers, progress }: Crew,
  isEnough: (counts: Counts) => boolean,
): Promise<readonly Finished[]> => {
  await Promise.all([...workers.map((worker) => worker.call('go', { mark: null })), progress(isEnough)])
  return Promise.all(workers.map((worker) => worker.call('finish')))
}

const figuresOf = (
  finished: readonly Finished[],
  startedAt: number,
  due: number,
  before: Reading,
  after: Reading,
): Figures => {
  const seconds = (Math.max(...finished.map(({ at }) => at)) - startedAt) / 1_000_000
  const cpu = finished.reduce((sum, { cpuSeconds }) => sum + cpuSeconds, 0)
  return {
    'tasks/s': due / seconds,
    'CPU per task': (cpu / due) * 1_000_000,
    'peak RSS': Math.max(...finished.map(({ peakRssMegabytes }) => peakRssMegabytes)),
    ...serverFigures(before, after, due),
  }
}
