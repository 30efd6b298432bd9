/** The workloads and their figures, the same for every system. */
import { percentileOf } from './median.ts'
import type { Meter } from './meter.ts'
import { type System, type Timed, timed } from './system.ts'
import type { Field } from './systems.ts'

export interface Figure {
  readonly unit: string
  readonly value: number
}

export interface Result {
  readonly figures: Readonly<Record<string, Figure>>
  /** Covers the measured part; null if the workload is not about throughput. */
  readonly cost: Cost | null
}

/** Per task. Null if there is no server or it cannot be measured. */
export interface Cost {
  readonly cpuMicros: number
  readonly serverCpuMicros: number | null
  readonly walBytes: number | null
}

export interface Workload {
  readonly name: string
  readonly what: string
  readonly fields: readonly Field[]
  /** Null if this system cannot do it. */
  run(system: System, tasks: number, meter: Meter): Promise<Result> | null
}

const EVERYWHERE: readonly Field[] = ['sqlite', 'postgres']
const EMBEDDED: readonly Field[] = ['sqlite']

/** Long enough to see every timer of an idle worker; shorter in a trial with few tasks. */
const IDLE_MS = 4_000
const CALLERS = 64

const rate = async (tasks: number, meter: Meter, work: () => Promise<Timed>): Promise<Result> => {
  const before = await meter.read()
  const { seconds, cpuSeconds } = await work()
  const after = await meter.read()
  const perTask = (from: number | null, to: number | null): number | null =>
    from === null || to === null ? null : (to - from) / tasks
  const serverCpu = perTask(before.cpuSeconds, after.cpuSeconds)
  return {
    figures: { 'tasks/s': { unit: '/s', value: tasks / seconds } },
    cost: {
      cpuMicros: (cpuSeconds / tasks) * 1_000_000,
      serverCpuMicros: serverCpu === null ? null : serverCpu * 1_000_000,
      walBytes: perTask(before.walBytes, after.walBytes),
    },
  }
}

const drainWith = (concurrency: number, fields: readonly Field[]): Workload => ({
  name: `drain-${concurrency}`,
  what: `drain of no-op tasks, concurrency ${concurrency}`,
  fields,
  run: ({ drain, insertBatch }, tasks, meter) =>
    drain === undefined
      ? null
      : insertBatch(tasks, 1_000).then(() => rate(tasks, meter, () => drain(tasks, concurrency))),
})

/** Fewer than in a batch, because each pays for its own durability. */
const someOf = (tasks: number, share: number): number => Math.max(64, Math.round(tasks / share))

export const WORKLOADS: readonly Workload[] = [
  {
    name: 'insert-batch',
    what: 'batch insert, calls of 1,000',
    fields: EVERYWHERE,
    run: (system, tasks, meter) => rate(tasks, meter, () => system.insertBatch(tasks, 1_000)),
  },
  {
    name: 'insert-all',
    what: 'batch insert, one call for all',
    fields: EMBEDDED,
    run: (system, tasks, meter) => rate(tasks, meter, () => system.insertBatch(tasks, tasks)),
  },
  {
    name: 'insert-1-caller',
    what: 'single inserts, 1 caller',
    fields: EVERYWHERE,
    run: (system, tasks, meter) => insertSingly(system, someOf(tasks, 10), 1, meter),
  },
  {
    name: `insert-${CALLERS}-callers`,
    what: `single inserts, ${CALLERS} callers`,
    fields: EVERYWHERE,
    run: (system, tasks, meter) =>
      system.hasConcurrentCallers ? insertSingly(system, someOf(tasks, 2), CALLERS, meter) : null,
  },
  drainWith(100, EVERYWHERE),
  drainWith(10, EMBEDDED),
  {
    name: 'latency',
    what: 'submit to start, idle worker',
    fields: EVERYWHERE,
    run: ({ latency }, tasks) =>
      latency === undefined ? null : latency(Math.min(500, someOf(tasks, 100))).then(percentiles),
  },
  {
    name: 'idle',
    what: 'idle worker',
    fields: EVERYWHERE,
    run: ({ idle }, tasks) => (idle === undefined ? null : idle(Math.min(IDLE_MS, tasks)).then(idleCpu)),
  },
]

const insertSingly = (system: System, tasks: number, callers: number, meter: Meter): Promise<Result> => {
  let left = tasks
  const caller = async (): Promise<void> => {
    while (left-- > 0) await system.insertOne()
  }
  return rate(tasks, meter, () => timed(() => Promise.all(Array.from({ length: callers }, caller))))
}

const percentiles = (samples: readonly number[]): Result => {
  const at = (share: number): Figure => ({ unit: 'ms', value: percentileOf(samples, share) })
  return { figures: { p50: at(0.5), p99: at(0.99) }, cost: null }
}

const idleCpu = ({ seconds, cpuSeconds }: Timed): Result => ({
  figures: { 'CPU of one core': { unit: '%', value: (cpuSeconds / seconds) * 100 } },
  cost: null,
})
