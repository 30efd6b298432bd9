/** What a system must be able to do to take part in the benchmark. One file in systems/ each. */

/** What a system stores of a task. A ratio is meaningless without it. */
export interface Keeps {
  readonly durability: string
  readonly lease: string
  readonly history: string
  readonly rows: string
}

/** Where a system may keep its tasks: empty at the start, removed afterwards. */
export interface Place {
  /** An empty folder. */
  readonly dir: string
  /** The address of an empty database, for the systems on PostgreSQL. */
  readonly database: string
  /** The address of an empty Redis, for the systems that need one. */
  readonly redis: string
}

/** Read from the environment of the system's process. */
export const placeOf = (env: NodeJS.ProcessEnv, dir: string): Place => ({
  dir,
  database: env['BENCH_DATABASE_URL'] ?? '',
  redis: env['BENCH_REDIS_URL'] ?? '',
})

export interface System {
  readonly name: string
  readonly keeps: Keeps
  open(place: Place): Promise<void>
  /** Inserts `count` tasks, `perCall` per call, one call after another. */
  insertBatch(count: number, perCall: number): Promise<Timed>
  /** Resolves when the task is stored. */
  insertOne(): Promise<void>
  /** Whether callers can wait for their inserts concurrently. A synchronous library has only one caller. */
  readonly hasConcurrentCallers: boolean
  /** Runs the `count` inserted tasks through a worker whose handler does nothing. */
  drain?(count: number, concurrency: number): Promise<Timed>
  /** For each of `count` submits to an idle worker: milliseconds from before the call to the handler's start. */
  latency?(count: number): Promise<number[]>
  /** Runs an idle worker for this long. */
  idle?(ms: number): Promise<Timed>
  close(): Promise<void>
}

export interface Timed {
  readonly seconds: number
  /** CPU of the whole process, including its threads. */
  readonly cpuSeconds: number
}

/** Only the work itself, without preparation and clean-up. */
export const timed = async (work: () => unknown): Promise<Timed> => {
  const cpu = process.cpuUsage()
  const start = performance.now()
  await work()
  const seconds = (performance.now() - start) / 1_000
  const { user, system } = process.cpuUsage(cpu)
  return { seconds, cpuSeconds: (user + system) / 1_000_000 }
}

/** About 100 bytes of JSON. */
export const payload = (n: number): unknown => ({
  n,
  to: 'someone@example.com',
  subject: 'Your order is on its way',
  locale: 'en-GB',
})

/** A short random pause between submits, so that the worker is idle and submits do not synchronise with a poll. */
export const idleGap = (): Promise<void> => new Promise((done) => setTimeout(done, 2 + Math.random() * 4))
