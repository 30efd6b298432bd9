/** The part of BullMQ that is used here. */
import { requirePeer } from './require.ts'

export interface Job<Data = unknown> {
  readonly data: Data
  /** Starts at 0 while the handler runs; one more when it has ended. */
  readonly attemptsMade: number
}

export interface JobOptions {
  /** From 1, lower ones run first; 0 runs before all others. */
  readonly priority?: number
  readonly delay?: number
  readonly attempts?: number
  readonly backoff?: { type: 'fixed'; delay: number }
}

export interface Queue {
  add(name: string, data: unknown, options?: JobOptions): Promise<unknown>
  addBulk(jobs: readonly { name: string; data: unknown; opts?: JobOptions }[]): Promise<unknown>
  getJobCounts(): Promise<Record<string, number>>
  obliterate(options: { force: boolean }): Promise<void>
  close(): Promise<void>
}

export interface Worker<Data = unknown> {
  on(event: 'completed' | 'failed', listener: (job: Job<Data>) => void): void
  on(event: 'error', listener: (error: Error) => void): void
  /** Runs until it is closed. */
  run(): Promise<void>
  waitUntilReady(): Promise<unknown>
  close(): Promise<void>
}

interface Module {
  readonly Queue: new (name: string, options: object) => Queue
  readonly Worker: new <Data>(name: string, run: (job: Job<Data>) => Promise<void>, options: object) => Worker<Data>
}

export const JOBS_AT_ONCE = 100

export interface BullMq {
  /** Resolves when it is connected. */
  makeQueue(name: string): Promise<Queue>
  /** Connects, but takes no job before `run`. */
  makeWorker<Data>(name: string, concurrency: number, run: (job: Job<Data>) => Promise<void>): Promise<Worker<Data>>
}

export const loadBullMq = (redis: string): BullMq => {
  const { Queue: MakeQueue, Worker: MakeWorker } = requirePeer('bullmq') as Module
  const connection = { url: redis, maxRetriesPerRequest: null }
  return {
    async makeQueue(name) {
      const queue = new MakeQueue(name, { connection, defaultJobOptions: { removeOnComplete: true } })
      await queue.getJobCounts()
      return queue
    },
    async makeWorker(name, concurrency, run) {
      const options = { connection, concurrency, removeOnComplete: { count: 0 }, autorun: false }
      const worker = new MakeWorker(name, run, options)
      worker.on('error', (error) => console.error(error))
      await worker.waitUntilReady()
      return worker
    },
  }
}
