/** The processes of one run: a producer, workers, and what the coordinator knows of their progress. */
import { setTimeout as sleep } from 'node:timers/promises'
import { type Meter, meterOf } from '../meter.ts'
import { placeOf } from '../system.ts'
import type { Use } from './adapter.ts'
import type { Ground } from './ground.ts'
import type { ProducerVerbs } from './producer-process.ts'
import { Remote } from './remote.ts'
import type { Shape } from './tasks.ts'
import type { Counts, WorkerVerbs } from './worker-process.ts'

export interface Crew {
  readonly producer: Remote<ProducerVerbs>
  readonly workers: readonly Remote<WorkerVerbs>[]
  readonly meter: Meter
  /** Resolves when the workers' counts together are enough; rejects when they stop growing. */
  progress(isEnough: (counts: Counts) => boolean): Promise<void>
  /** The producer has ended by then. */
  dismissProducer(): Promise<void>
}

export interface CrewOptions {
  readonly shape: Shape
  readonly isLive: boolean
  readonly processes: number
  /** False if the store already exists and nothing is submitted. */
  readonly hasProducer: boolean
}

/** A system without a single completion in this time has stalled. */
const STALLED_MS = 30_000
const CLOSE_MS = 10_000

export const withCrew = async <T>(
  ground: Ground,
  { shape, isLive, processes, hasProducer }: CrewOptions,
  use: (crew: Crew) => Promise<T>,
): Promise<T> => {
  const { system, env, dir, ours } = ground
  const fork = <V extends WorkerVerbs | ProducerVerbs>(file: string): Remote<V> =>
    new Remote<V>(new URL(file, import.meta.url), env, [system.name])
  const meter = await meterOf(system.server, env)
  const before = await meter.read()
  const producers = hasProducer ? [fork<ProducerVerbs>('./producer-process.ts')] : []
  const workers = Array.from({ length: processes }, () => fork<WorkerVerbs>('./worker-process.ts'))
  /** A library that does not release its connections is ended by `end`. */
  const close = async (some: readonly Remote<WorkerVerbs | ProducerVerbs>[]): Promise<void> => {
    const closed = await Promise.all(
      some.map((one) => Promise.race([one.call('close'), sleep(CLOSE_MS, null, { ref: false })])),
    )
    for (const answer of closed) ours(answer?.cpuSeconds ?? 0)
  }
  try {
    const open: Use = { place: placeOf(env, dir), shape, isLive }
    await Promise.all(producers.map((producer) => producer.call('open', open)))
    await Promise.all(workers.map((worker) => worker.call('open', open)))
    const result = await use({
      producer: producers[0]!,
      workers,
      meter,
      progress: progressOf(workers),
      async dismissProducer() {
        const gone = producers.splice(0)
        await close(gone)
        await Promise.all(gone.map((producer) => producer.end()))
      },
    })
    await close([...workers, ...producers])
    ours(((await meter.read()).cpuSeconds ?? 0) - (before.cpuSeconds ?? 0))
    return result
  } finally {
    await Promise.all([...workers, ...producers].map((one) => one.end()))
    await meter.close()
  }
}

const progressOf = (workers: readonly Remote<WorkerVerbs>[]): Crew['progress'] => {
  const latest: Counts[] = workers.map(() => ({ ended: 0, completed: 0 }))
  const total = (): Counts => ({
    ended: latest.reduce((sum, { ended }) => sum + ended, 0),
    completed: latest.reduce((sum, { completed }) => sum + completed, 0),
  })
  let changed = (): void => {}
  let failed = (_: Error): void => {}
  for (const [i, worker] of workers.entries()) {
    worker.onNote = (note) => {
      latest[i] = note as Counts
      changed()
    }
    worker.onEnd = (error) => failed(error)
  }
  return (isEnough) =>
    new Promise((enough, reject) => {
      const check = (): void => {
        clearTimeout(timer)
        if (isEnough(total())) enough()
        else timer = setTimeout(giveUp, STALLED_MS)
      }
      const giveUp = (): void => {
        const { ended, completed } = total()
        const seconds = STALLED_MS / 1_000
        failed(new Error(`no task ended for ${seconds} s; before, ${ended} had ended and ${completed} had completed`))
      }
      let timer: NodeJS.Timeout | undefined
      changed = check
      failed = (error) => {
        clearTimeout(timer)
        reject(error)
      }
      check()
    })
}
