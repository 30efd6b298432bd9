/** The workloads, and what each of them gives: the same for every system. */
import { type System, type Timed, timed } from './system.ts'

export interface Figure {
  readonly unit: string
  readonly value: number
}

export interface Result {
  readonly figures: Readonly<Record<string, Figure>>
  /** Of the measured part; null where it is not about throughput. */
  readonly cpuMicrosPerTask: number | null
}

export interface Workload {
  readonly name: string
  readonly what: string
  /** Null: this system cannot do it. */
  run(system: System, tasks: number): Promise<Result> | null
}

/** Long enough to see every timer of an idle worker; shorter in a trial with few tasks. */
const IDLE_MS = 4_000
const CALLERS = 64

const rate = (tasks: number, { seconds, cpuSeconds }: Timed): Result => ({
  figures: { 'tasks/s': { unit: '/s', value: tasks / seconds } },
  cpuMicrosPerTask: (cpuSeconds / tasks) * 1_000_000,
})

const drainWith = (concurrency: number): Workload => ({
  name: `drain-${concurrency}`,
  what: `drain of no-op tasks, concurrency ${concurrency}`,
  run: ({ drain, insertBatch }, tasks) =>
    drain === undefined
      ? null
      : insertBatch(tasks, 1_000).then(async () => rate(tasks, await drain(tasks, concurrency))),
})

/** Fewer than in a batch, because each pays for its own durability. */
const someOf = (tasks: number, share: number): number => Math.max(64, Math.round(tasks / share))

export const WORKLOADS: readonly Workload[] = [
  {
    name: 'insert-batch',
    what: 'batch insert, calls of 1,000',
    run: async (system, tasks) => rate(tasks, await system.insertBatch(tasks, 1_000)),
  },
  {
    name: 'insert-all',
    what: 'batch insert, one call for all',
    run: async (system, tasks) => rate(tasks, await system.insertBatch(tasks, tasks)),
  },
  {
    name: 'insert-1-caller',
    what: 'single inserts, 1 caller',
    run: (system, tasks) => insertSingly(system, someOf(tasks, 10), 1),
  },
  {
    name: `insert-${CALLERS}-callers`,
    what: `single inserts, ${CALLERS} callers`,
    run: (system, tasks) => (system.hasConcurrentCallers ? insertSingly(system, someOf(tasks, 2), CALLERS) : null),
  },
  drainWith(100),
  drainWith(10),
  {
    name: 'latency',
    what: 'submit to start, idle worker',
    run: ({ latency }, tasks) =>
      latency === undefined ? null : latency(Math.min(500, someOf(tasks, 100))).then(percentiles),
  },
  {
    name: 'idle',
    what: 'idle worker',
    run: ({ idle }, tasks) => (idle === undefined ? null : idle(Math.min(IDLE_MS, tasks)).then(idleCpu)),
  },
]

const insertSingly = async (system: System, tasks: number, callers: number): Promise<Result> => {
  let left = tasks
  const caller = async (): Promise<void> => {
    while (left-- > 0) await system.insertOne()
  }
  return rate(tasks, await timed(() => Promise.all(Array.from({ length: callers }, caller))))
}

const percentiles = (samples: readonly number[]): Result => {
  const sorted = [...samples].sort((a, b) => a - b)
  const at = (share: number): Figure => ({
    unit: 'ms',

    value: sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]!,
  })
  return { figures: { p50: at(0.5), p99: at(0.99) }, cpuMicrosPerTask: null }
}

const idleCpu = ({ seconds, cpuSeconds }: Timed): Result => ({
  figures: { 'CPU of one core': { unit: '%', value: (cpuSeconds / seconds) * 100 } },
  cpuMicrosPerTask: null,
})
