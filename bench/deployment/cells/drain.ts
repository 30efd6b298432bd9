/** Worker processes run waiting tasks until the last outcome is written. */
import type { Reading } from '../../meter.ts'
import { type Crew, withCrew } from '../crew.ts'
import { type Figures, serverFigures } from '../figures.ts'
import type { Ground } from '../ground.ts'
import { micros } from '../serve.ts'
import { dueOf, type Shape } from '../tasks.ts'
import type { Counts } from '../worker-process.ts'

const PER_CALL = 1_000

export interface Drain {
  readonly shape: Shape
  readonly processes: number
  readonly tasks: number
}

/**
 * Unmeasured tasks per process before the measured time. A new process spends more time on compiling its code than on its tasks; in a
 * deployment it has been running for days. Holdfast's CPU per task falls for 20,000 to 28,000 tasks. With 4,000 the figures of four
 * processes, each of which runs a quarter of the tasks, were mostly those of the compiler.
 */
const WARM_UP = 20_000
/** And after it: a worker holds tasks that it has not run yet, as at the begin of the measured time. */
const MARGIN = 4_000

export const runDrain = (ground: Ground, { shape, processes, tasks }: Drain): Promise<Figures> =>
  withCrew(ground, { shape, processes, isLive: false, hasProducer: true }, async (crew) => {
    const { producer, workers, progress } = crew
    const warmUp = Math.min(WARM_UP, tasks) * processes
    const margin = Math.min(MARGIN, tasks) * processes
    const all = warmUp + tasks + margin
    await producer.call('insert', { count: all, perCall: PER_CALL })
    const due = dueOf(shape, all)
    const begun = await snapshot(crew)
    await Promise.all([
      ...workers.map((worker) => worker.call('go', { mark: null })),
      progress(({ ended }) => ended >= warmUp),
    ])
    const from = await snapshot(crew)
    await progress(({ ended }) => ended >= due - margin)
    const to = await snapshot(crew)
    await progress(({ ended }) => ended >= due)
    const finished = await Promise.all(workers.map((worker) => worker.call('finish')))
    if (shape.isMixed) {
      // Second attempts are not measured, but they must succeed.
      await work(crew, ({ completed }) => completed >= due)
    }
    const unfinished = await producer.call('countUnfinished', all - due)
    if (unfinished !== all - due)
      throw new Error(`${unfinished} of ${all} tasks have not completed; ${all - due} were expected`)
    // A trial with few tasks ends within its margin: then all of it counts.
    const isSeen = to.ended - from.ended >= tasks / 2
    return {
      ...figuresBetween(isSeen ? from : begun, to),
      'peak RSS': Math.max(...finished.map((one) => one.peakRssMegabytes)),
    }
  })

/** Waits until the workers have done enough, then stops them. */
const work = async ({ workers, progress }: Crew, isEnough: (counts: Counts) => boolean): Promise<void> => {
  await Promise.all([...workers.map((worker) => worker.call('go', { mark: null })), progress(isEnough)])
  await Promise.all(workers.map((worker) => worker.call('finish')))
}

interface Snapshot {
  readonly at: number
  readonly ended: number
  readonly cpuSeconds: number
  readonly server: Reading
}

const snapshot = async ({ workers, meter }: Crew): Promise<Snapshot> => {
  const server = await meter.read()
  const spent = await Promise.all(workers.map((worker) => worker.call('spent')))
  return {
    at: micros(),
    ended: spent.reduce((sum, { ended }) => sum + ended, 0),
    cpuSeconds: spent.reduce((sum, { cpuSeconds }) => sum + cpuSeconds, 0),
    server,
  }
}

const figuresBetween = (from: Snapshot, to: Snapshot): Figures => {
  const ended = to.ended - from.ended
  return {
    'tasks/s': ended / ((to.at - from.at) / 1_000_000),
    'CPU per task': ((to.cpuSeconds - from.cpuSeconds) / ended) * 1_000_000,
    ...serverFigures(from.server, to.server, ended),
  }
}
