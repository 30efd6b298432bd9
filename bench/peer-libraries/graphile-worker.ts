/** The part of graphile-worker that is used here, with the settings that its performance page recommends. */
import type { EventEmitter } from 'node:events'
import { requirePeer } from './require.ts'

export interface Job {
  /** From 1. */
  readonly attempts: number
}

export interface JobSpec {
  readonly identifier: string
  readonly payload: unknown
  /** Lower ones run first. */
  readonly priority?: number
  readonly runAt?: Date
}

export interface Runner {
  /** Also waits until the last batch of completions is written. */
  stop(): Promise<void>
}

export interface Utils {
  migrate(): Promise<void>
  addJob(type: string, payload: unknown): Promise<unknown>
  addJobs(jobs: readonly JobSpec[]): Promise<unknown>
  withPgClient<T>(
    use: (client: { query(sql: string): Promise<{ rows: { count: string }[] }> }) => Promise<T>,
  ): Promise<T>
  release(): Promise<void>
}

interface Pool {
  on(event: 'error' | 'connect', listener: (error: unknown) => void): void
  connect(): Promise<{ release(): void }>
  end(): Promise<void>
}

type Handler<Payload> = (payload: Payload, helpers: { readonly job: Job }) => Promise<void>

interface RunOptions<Payload> {
  readonly events: EventEmitter
  /** Jobs that a process locks and fetches ahead; null: none. */
  readonly localQueue: number | null
  readonly taskList: Readonly<Record<string, Handler<Payload>>>
  /** Default: its own. */
  readonly pool?: Pool
}

interface Module {
  readonly Logger: new (factory: () => () => void) => unknown
  run(options: object): Promise<Runner>
  makeWorkerUtils(options: object): Promise<Utils>
}

const JOBS_AT_ONCE = 24
const CONNECTIONS = JOBS_AT_ONCE + 2

export interface GraphileWorker {
  makeUtils(): Promise<Utils>
  run<Payload>(options: RunOptions<Payload>): Promise<Runner>
  /** Resolves when all its connections are open. */
  openPool(): Promise<Pool>
}

export const loadGraphileWorker = (connectionString: string): GraphileWorker => {
  const { Logger, run, makeWorkerUtils } = requirePeer('graphile-worker') as Module
  const { Pool: MakePool } = requirePeer('pg') as { readonly Pool: new (options: object) => Pool }
  const worker = {
    connectionString,
    logger: new Logger(() => () => {}),
    concurrentJobs: JOBS_AT_ONCE,
    maxPoolSize: CONNECTIONS,
    completeJobBatchDelay: 0,
    failJobBatchDelay: 0,
  }
  return {
    makeUtils: () => makeWorkerUtils({ preset: { worker } }),
    run: ({ events, localQueue, taskList, pool }) =>
      run({
        preset: { worker: { ...worker, ...(localQueue !== null && { localQueue: { size: localQueue } }), events } },
        ...(pool && { pgPool: pool }),
        taskList,
        parsedCronItems: [],
      }),
    async openPool() {
      // By default connections that are not used for 10 s are closed, and filling the store may take longer.
      const pool = new MakePool({ connectionString, max: CONNECTIONS, idleTimeoutMillis: 0 })
      // graphile-worker insists on both.
      pool.on('error', (error) => console.error(error))
      pool.on('connect', () => {})
      const clients = await Promise.all(Array.from({ length: CONNECTIONS }, () => pool.connect()))
      for (const client of clients) client.release()
      return pool
    },
  }
}
