/** Jobs that outlive a request: one call starts a job, others read its progress. Kept in this process only. */
import { randomUUID } from 'node:crypto'
import { HoldfastError } from '../index.ts'
import { errorOf } from './wire/errors.ts'

export interface BackgroundJob {
  readonly id: string
  readonly name: string
  readonly state: 'running' | 'done' | 'failed'
  /** Tasks so far. */
  readonly done: number
  readonly report: Readonly<Record<string, unknown>> | null
  readonly error: object | null
}

/** Ended jobs are kept for a while, so that the caller can read the result. */
const KEPT = 100

type Work = (onProgress: (done: number) => void, signal: AbortSignal) => Promise<Readonly<Record<string, unknown>>>

export class BackgroundJobs {
  readonly #jobs = new Map<string, BackgroundJob>()
  readonly #stops = new Map<string, AbortController>()

  begin(name: string, work: Work): BackgroundJob {
    const id = randomUUID()
    const stop = new AbortController()
    this.#stops.set(id, stop)
    this.#jobs.set(id, { id, name, state: 'running', done: 0, report: null, error: null })
    const change = (facts: Partial<BackgroundJob>): void => {
      this.#jobs.set(id, { ...this.#jobs.get(id)!, ...facts })
    }
    const run = async (): Promise<void> => {
      try {
        const report = await work((done) => change({ done }), stop.signal)
        change({ state: 'done', report })
      } catch (error) {
        change({ state: 'failed', error: errorOf(error) })
      }
      this.#stops.delete(id)
      this.#forget()
    }
    void run()
    return this.#jobs.get(id)!
  }

  get(id: string): BackgroundJob {
    const job = this.#jobs.get(id)
    if (job === undefined) throw new HoldfastError('TASK_NOT_FOUND', `no background job has the id ${id}`, { id })
    return job
  }

  /** Stops between two batches; what is done stays done. */
  stop(id: string): BackgroundJob {
    const job = this.get(id)
    this.#stops.get(id)?.abort()
    return job
  }

  close(): void {
    for (const stop of this.#stops.values()) stop.abort()
  }

  #forget(): void {
    for (const { id, state } of this.#jobs.values()) {
      if (this.#jobs.size <= KEPT) return
      if (state !== 'running') this.#jobs.delete(id)
    }
  }
}
