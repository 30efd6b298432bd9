/** The part of pg-boss that is used here. */
import { requirePeer } from './require.ts'

export interface Job<Data = unknown> {
  readonly id: string
  readonly data: Data
  /** From 0. */
  readonly retryCount: number
}

interface JobOptions {
  /** Higher ones run first. */
  readonly priority?: number
  readonly startAfter?: Date
}

export interface Boss {
  start(): Promise<unknown>
  stop(options: { graceful: boolean }): Promise<void>
  on(event: 'error' | 'warning', listener: (error: unknown) => void): void
  createQueue(name: string, options: { notify: boolean; retryDelay?: number }): Promise<void>
  insert(name: string, jobs: readonly ({ data: unknown } & JobOptions)[]): Promise<unknown>
  send(name: string, data: unknown, options?: JobOptions): Promise<unknown>
  fetch<Data>(name: string, options: { batchSize: number }): Promise<Job<Data>[]>
  complete(name: string, ids: readonly string[]): Promise<unknown>
  fail(name: string, ids: readonly string[]): Promise<unknown>
  work<Data>(
    name: string,
    options: { batchSize: number },
    handler: (jobs: Job<Data>[]) => Promise<void>,
  ): Promise<string>
  offWork(name: string, options: { wait: boolean }): Promise<void>
  getDb(): { executeSql(sql: string): Promise<{ rows: { count: string }[] }> }
}

/** Without its maintenance and cron, which would only take time from the jobs. */
export const makeBoss = (connectionString: string): Boss => {
  const { PgBoss } = requirePeer('pg-boss') as { readonly PgBoss: new (options: object) => Boss }
  const boss = new PgBoss({ connectionString, supervise: false, schedule: false, useListenNotify: true })
  boss.on('error', (error) => console.error(error))
  return boss
}

/** The size of large batches in its documentation. */
export const BATCH_SIZE = 500
/** Concurrent loops that fetch, run and complete. More were no faster. */
export const LOOPS = 4
