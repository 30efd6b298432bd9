/** Tasks through a queue of its own: a batch beside a worker that runs them, then one after the other. */
import { type Client, HoldfastError, isHoldfastError, type Worker } from '../../index.ts'
import type { Cost, Meter } from './cost.ts'

export interface Wanted {
  /** Nobody else's: it is removed with everything in it. */
  readonly queue: string
  readonly tasks: number
  readonly concurrency: number
  /** Counts requests, where they have a price. */
  readonly meter: Meter | null
  readonly signal: AbortSignal
}

export interface Measured {
  readonly tasks: number
  readonly concurrency: number
  readonly submittedPerSecond: number
  /** From the first submit to the last completion. */
  readonly completedPerSecond: number
  /** In milliseconds, of tasks that are submitted one after the other to a worker that waits. */
  readonly submitToStart: { readonly tasks: number; readonly p50: number; readonly p99: number }
  readonly cost?: { readonly batch: Cost; readonly alone: Cost }
}

const TYPE = 'bench'
/** One after the other: enough for a 99th percentile that means something. */
const ALONE = 100
const REMOVERS = 50

/** Whatever happens, what it has made is gone when this ends. */
export const measure = async (client: Client, wanted: Wanted): Promise<Measured> => {
  const bench = new Bench(client, wanted)
  try {
    return await bench.run()
  } finally {
    await bench.remove().catch((error: unknown) => {
      if (!isHoldfastError(error)) throw error
      const { code, message, details } = error
      throw new HoldfastError(code, `${message}. What could not be removed is in queue ${wanted.queue}`, details, error)
    })
  }
}

class Bench {
  readonly #client: Client
  readonly #wanted: Wanted
  readonly #worker: Worker
  readonly #ids = new Set<string>()
  readonly #interrupted: Promise<never>
  /** Monotonic: when the last one was started. */
  #startedAt = 0
  #left = 0
  #ended = Promise.withResolvers<void>()

  constructor(client: Client, wanted: Wanted) {
    const { queue, concurrency, signal } = wanted
    this.#client = client
    this.#wanted = wanted
    this.#interrupted = new Promise((_, reject) => {
      const stop = (): void => reject(new HoldfastError('ABORTED', 'interrupted: what was measured so far is not told'))
      signal.addEventListener('abort', stop, { once: true })
      if (signal.aborted) stop()
    })
    this.#interrupted.catch(() => {})
    const onTaskEnd = (_: unknown, error: HoldfastError | null): void => {
      if (error === null && --this.#left === 0) this.#ended.resolve()
    }
    this.#worker = client.worker({ queues: [queue], concurrency, hooks: { onTaskEnd } }).handle(TYPE, async () => {
      this.#startedAt = performance.now()
    })
  }

  async run(): Promise<Measured> {
    const { tasks, concurrency, meter } = this.#wanted
    this.#worker.start()
    // What is done once in a process is not a task's: the worker registers, the queue is made known.
    await this.#alone()
    meter?.take(1)
    const { submitted, completed } = await this.#batch()
    const batch = meter?.take(tasks)
    const waits: number[] = []
    while (waits.length < Math.min(ALONE, tasks)) waits.push(await this.#alone())
    const alone = meter?.take(waits.length)
    waits.sort((a, b) => a - b)
    const at = (share: number): number => Math.round(waits[Math.ceil(waits.length * share) - 1]! * 100) / 100
    return {
      tasks,
      concurrency,
      submittedPerSecond: Math.round(tasks / submitted),
      completedPerSecond: Math.round(tasks / completed),
      submitToStart: { tasks: waits.length, p50: at(0.5), p99: at(0.99) },
      ...(batch === undefined || alone === undefined ? null : { cost: { batch, alone } }),
    }
  }

  /** How long it took until all were submitted, and until all were completed, in seconds. */
  async #batch(): Promise<{ readonly submitted: number; readonly completed: number }> {
    const { queue, tasks } = this.#wanted
    const ended = this.#expect(tasks)
    const begun = performance.now()
    const items = Array.from({ length: tasks }, (_, n) => ({ type: TYPE, input: { n } }))
    const results = await this.#client.submitMany(items, { queue })
    const submitted = (performance.now() - begun) / 1_000
    for (const result of results) this.#note(result.ok ? [result.task.id] : idsIn(result.error))
    for (const result of results) if (!result.ok) throw result.error
    await Promise.race([ended, this.#interrupted])
    return { submitted, completed: (performance.now() - begun) / 1_000 }
  }

  /** One task, through to its end: how long it waited for its start, in milliseconds. */
  async #alone(): Promise<number> {
    const ended = this.#expect(1)
    const begun = performance.now()
    try {
      this.#note([(await this.#client.submit(TYPE, null, { queue: this.#wanted.queue })).id])
    } catch (error) {
      this.#note(idsIn(error))
      throw error
    }
    await Promise.race([ended, this.#interrupted])
    return this.#startedAt - begun
  }

  #expect(tasks: number): Promise<void> {
    this.#left = tasks
    this.#ended = Promise.withResolvers()
    return this.#ended.promise
  }

  #note(ids: readonly string[]): void {
    for (const id of ids) this.#ids.add(id)
  }

  /** By their ids, which costs no walk over what others have there. */
  async remove(): Promise<void> {
    await this.#worker.stop()
    const ids = this.#ids.values()
    const lane = async (): Promise<void> => {
      for (const id of ids) await this.#removeOne(id)
    }
    await Promise.all(Array.from({ length: REMOVERS }, lane))
    await this.#client.queue(this.#wanted.queue).forget()
  }

  async #removeOne(id: string): Promise<void> {
    try {
      await this.#client.delete(id)
    } catch (error) {
      if (isHoldfastError(error, 'TASK_NOT_FOUND')) return
      if (!isHoldfastError(error, 'TASK_NOT_TERMINAL')) throw error
      await this.#client.cancel(id)
      await this.#client.delete(id)
    }
  }
}

/** Of tasks that may have been stored although nobody could say so. */
const idsIn = (error: unknown): readonly string[] =>
  isHoldfastError(error) && Array.isArray(error.details['ids']) ? (error.details['ids'] as string[]) : []
