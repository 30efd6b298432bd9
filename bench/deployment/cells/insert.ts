/** Batches of tasks from one producer process. */
import { withCrew } from '../crew.ts'
import { type Figures, serverFigures } from '../figures.ts'
import type { Ground } from '../ground.ts'
import type { Shape } from '../tasks.ts'

export interface Insert {
  readonly shape: Shape
  readonly tasks: number
}

const PER_CALL = 1_000

export const runInsert = (ground: Ground, { shape, tasks }: Insert): Promise<Figures> =>
  withCrew(ground, { shape, processes: 0, isLive: false, hasProducer: true }, async ({ producer, meter }) => {
    const before = await meter.read()
    const { seconds, cpuSeconds } = await producer.call('insert', { count: tasks, perCall: PER_CALL })
    const after = await meter.read()
    const unfinished = await producer.call('countUnfinished', tasks)
    if (unfinished !== tasks) throw new Error(`${unfinished} of ${tasks} tasks are stored`)
    return {
      'tasks/s': tasks / seconds,
      'CPU per task': (cpuSeconds / tasks) * 1_000_000,
      ...serverFigures(before, after, tasks),
    }
  })
