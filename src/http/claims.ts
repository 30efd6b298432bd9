/** Claims of workers over HTTP. Concurrent claims of one worker share one claim on the store; a waiting one is answered when there is work. */
import { hostname } from 'node:os'
import { ANY_TYPE, type ClaimNextOptions, type Client, parseDuration, type TaskLease } from '../index.ts'

/** Tasks submitted by other processes are found by polling; those submitted through this one are known at once. */
const LOOK_EVERY = 500
/** The limit of one claim on the store. */
const MOST = 100

export interface ClaimWish extends Omit<ClaimNextOptions, 'queue'> {
  readonly queues: readonly string[]
  readonly limit: number
  readonly patience: number
}

interface Waiter {
  readonly limit: number
  readonly done: (leases: TaskLease[]) => void
  readonly fail: (error: unknown) => void
}

export class Claims {
  readonly #client: Client
  /** Waiters for the next claim with the same options. An entry exists while a claim runs. */
  readonly #waiting = new Map<string, Waiter[]>()
  readonly #closing = new AbortController()
  #looks = 0

  constructor(client: Client) {
    this.#client = client
  }

  /** Empty when no task came in time, or when the caller has disconnected: then claimed tasks are released. */
  async some(wish: ClaimWish, gone: () => AbortSignal): Promise<TaskLease[]> {
    void this.#client.heardOfWorker(wish.workerId, {
      queues: wish.queues,
      types: wish.types ?? [ANY_TYPE],
      concurrency: wish.limit,
      host: hostname(),
      leaseTtl: wish.leaseTtl === undefined ? undefined : parseDuration(wish.leaseTtl, 'leaseTtl'),
    })
    if (wish.patience <= 0) return this.#look(wish)
    const signal = AbortSignal.any([gone(), this.#closing.signal])
    const until = performance.now() + wish.patience
    for (;;) {
      if (this.#closing.signal.aborted) return []
      const leases = await this.#look(wish)
      if (signal.aborted) {
        await Promise.all(leases.map((lease) => lease.release()))
        return []
      }
      const left = until - performance.now()
      if (leases.length > 0 || left <= 0) return leases
      await this.#change(wish.queues, Math.min(left, LOOK_EVERY), signal)
    }
  }

  /** Answers those that wait: the server stops. */
  close(): void {
    this.#closing.abort()
  }

  async #look({ queues, limit, patience: _, ...options }: ClaimWish): Promise<TaskLease[]> {
    const leases: TaskLease[] = []
    // Each claim starts with another queue, so that a full one does not starve the others.
    const first = this.#looks++ % queues.length
    for (const queue of [...queues.slice(first), ...queues.slice(0, first)]) {
      if (leases.length < limit) leases.push(...(await this.#together({ ...options, queue }, limit - leases.length)))
    }
    return leases
  }

  #together(options: ClaimNextOptions, limit: number): Promise<TaskLease[]> {
    const key = JSON.stringify(options)
    return new Promise((done, fail) => {
      const waiter = { limit, done, fail }
      const waiting = this.#waiting.get(key)
      if (waiting !== undefined) waiting.push(waiter)
      else {
        this.#waiting.set(key, [waiter])
        void this.#serve(key, options)
      }
    })
  }

  /** Claims repeatedly while there are waiters. */
  async #serve(key: string, options: ClaimNextOptions): Promise<void> {
    // Lets requests that arrive together share one claim.
    await new Promise<void>((done) => setImmediate(done))
    for (let waiting = this.#waiting.get(key)!; waiting.length > 0; ) {
      const served = take(waiting, MOST)
      try {
        const limit = served.reduce((sum, one) => sum + one.limit, 0)
        const leases = await this.#client.claimMany({ ...options, limit: Math.min(limit, MOST) })
        for (const { limit: most, done } of served) done(leases.splice(0, most))
      } catch (error) {
        for (const { fail } of served) fail(error)
      }
    }
    this.#waiting.delete(key)
  }

  /** Resolves when a task becomes pending in one of the queues, the time is over, or the caller has disconnected. */
  #change(queues: readonly string[], longest: number, signal: AbortSignal): Promise<void> {
    return new Promise((done) => {
      const end = (): void => {
        clearTimeout(timer)
        stop()
        signal.removeEventListener('abort', end)
        done()
      }
      const stop = this.#client.onMove(({ task }) => {
        if (task.status === 'pending' && queues.includes(task.queue)) end()
      })
      const timer = setTimeout(end, longest)
      signal.addEventListener('abort', end)
    })
  }
}

/** Takes the first waiters whose limits add up to at most `most`; at least one. */
const take = (waiting: Waiter[], most: number): Waiter[] => {
  let sum = 0
  const end = waiting.findIndex(({ limit }, i) => {
    sum += limit
    return i > 0 && sum > most
  })
  return waiting.splice(0, end === -1 ? waiting.length : end)
}
