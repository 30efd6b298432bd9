/** What a system must be able to do to take part in the benchmark. One file in systems/ each. */

/** What a task costs depends on what is kept of it: a ratio without this line means nothing. */
export interface Keeps {
  readonly durability: string
  readonly lease: string
  readonly history: string
  readonly rows: string
}

/** Where a system may keep its tasks: nothing is there yet, and everything is removed after. */
export interface Place {
  /** An empty folder. */
  readonly dir: string
  /** The address of an empty database, for the systems on PostgreSQL. */
  readonly database: string
  /** The address of an empty Redis, for the systems that need one. */
  readonly redis: string
}

/** From the environment that a system was lent. */
export const placeOf = (env: NodeJS.ProcessEnv, dir: string): Place => ({
  dir,
  database: env['BENCH_DATABASE_URL'] ?? '',
  redis: env['BENCH_REDIS_URL'] ?? '',
})

export interface System {
  readonly name: string
  readonly keeps: Keeps
  open(place: Place): Promise<void>
  /** `count` tasks, `perCall` to one call, the calls one after the other. */
  insertBatch(count: number, perCall: number): Promise<Timed>
  /** Resolves when the one task is stored. */
  insertOne(): Promise<void>
  /** Whether callers can wait for their inserts side by side. A synchronous library has one caller, whatever the host does. */
  readonly hasConcurrentCallers: boolean
  /** Runs what was inserted, `count` tasks, through a worker whose handler does nothing. */
  drain?(count: number, concurrency: number): Promise<Timed>
  /** For each of `count` submits to an idle worker: milliseconds from before the call to the handler's start. */
  latency?(count: number): Promise<number[]>
  /** A worker that finds nothing to do for this long. */
  idle?(ms: number): Promise<Timed>
  close(): Promise<void>
}

export interface Timed {
  readonly seconds: number
  /** Of the whole process, its threads included. */
  readonly cpuSeconds: number
}

/** The work alone: what is got ready before and tidied up after does not count. */
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

/** Idle means idle: a short pause of random length between submits, so that none of them meets the last one's tail or the beat of a poll. */
export const idleGap = (): Promise<void> => new Promise((done) => setTimeout(done, 2 + Math.random() * 4))
