/** Claims of workers elsewhere. Those that a worker makes at the same time share one look; one that waits is answered when work comes. */
import type { ClaimNextOptions, Client, TaskLease } from '../index.ts'

/** What other processes submit is found by looking; what came through this one is known at once. */
const LOOK_EVERY = 500
/** Of one look. */
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
  /** Who waits for the next look of a kind; there while one is under way. */
  readonly #waiting = new Map<string, Waiter[]>()

  constructor(client: Client) {
    this.#client = client
  }

  /** Empty when nothing came in time; or when the caller has gone meanwhile: then what was claimed is given back. */
  async some(wish: ClaimWish, gone: () => AbortSignal): Promise<TaskLease[]> {
    if (wish.patience <= 0) return this.#look(wish)
    const signal = gone()
    const until = performance.now() + wish.patience
    for (;;) {
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

  async #look({ queues, limit, patience: _, ...options }: ClaimWish): Promise<TaskLease[]> {
    const leases: TaskLease[] = []
    for (const queue of queues) {
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

  /** Look after look while somebody waits. */
  async #serve(key: string, options: ClaimNextOptions): Promise<void> {
    // Requests that were read together are looked for together.
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

  /** Something became pending in one of the queues, or the time is over, or the caller has gone. */
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

/** The first ones, whose wishes together are no more than `most`; at least one. */
const take = (waiting: Waiter[], most: number): Waiter[] => {
  let sum = 0
  const end = waiting.findIndex(({ limit }, i) => {
    sum += limit
    return i > 0 && sum > most
  })
  return waiting.splice(0, end === -1 ? waiting.length : end)
}
