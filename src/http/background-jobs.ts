/** Jobs that outlive a request: one call starts a job, others read its progress. Kept in this process only. */
import { randomUUID } from 'node:crypto'
import { HoldfastError, type Instant } from '../index.ts'
import { errorOf } from './wire/errors.ts'

export interface BackgroundJob {
  readonly id: string
  readonly name: string
  readonly state: 'running' | 'done' | 'failed'
  readonly startedAt: string
  readonly endedAt: string | null
  /** Who began it, where that is known. */
  readonly by: string | null
  /** How many tasks match; null before they are counted. */
  readonly total: number | null
  /** With a canary: how many run before the others. */
  readonly canary: number | null
  /** Tasks so far. */
  readonly done: number
  readonly report: Readonly<Record<string, unknown>> | null
  readonly error: object | null
}

/** Ended jobs are kept for a while, so that the caller can read the result. */
const KEPT = 100

type Work = (onProgress: (done: number) => void, signal: AbortSignal) => Promise<Readonly<Record<string, unknown>>>

interface Begun {
  readonly by: string | null
  readonly canary?: number
  /** Counts what matches, before the work. */
  readonly total: () => Promise<number | null>
}

export class BackgroundJobs {
  readonly #jobs = new Map<string, BackgroundJob>()
  readonly #stops = new Map<string, AbortController>()
  readonly #now: () => Promise<Instant>

  /** By the time of the store, like everything else that is shown. */
  constructor(now: () => Promise<Instant>) {
    this.#now = now
  }

  /** The newest first. */
  list(): readonly BackgroundJob[] {
    return [...this.#jobs.values()].reverse()
  }

  async begin(name: string, { by, canary = 0, total }: Begun, work: Work): Promise<BackgroundJob> {
    const id = randomUUID()
    const stop = new AbortController()
    this.#stops.set(id, stop)
    this.#jobs.set(id, {
      id,
      name,
      state: 'running',
      startedAt: await this.#instant(),
      endedAt: null,
      by,
      done: 0,
      total: null,
      canary: canary > 0 ? canary : null,
      report: null,
      error: null,
    })
    const change = (facts: Partial<BackgroundJob>): void => {
      this.#jobs.set(id, { ...this.#jobs.get(id)!, ...facts })
    }
    const run = async (): Promise<void> => {
      try {
        change({ total: await total() })
        const report = await work((done) => change({ done }), stop.signal)
        change({ state: 'done', report, endedAt: await this.#instant() })
      } catch (error) {
        change({ state: 'failed', error: errorOf(error), endedAt: await this.#instant() })
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

  /** The store may be away when a job fails. */
  async #instant(): Promise<string> {
    return new Date(await this.#now().catch(() => Date.now())).toISOString()
  }

  #forget(): void {
    for (const { id, state } of this.#jobs.values()) {
      if (this.#jobs.size <= KEPT) return
      if (state !== 'running') this.#jobs.delete(id)
    }
  }
}
