/** Runs tasks through a temporary queue: a batch while a worker runs, then one after another. */
import { type Client, HoldfastError, isHoldfastError, type Worker } from '../../index.ts'
import type { Cost, Meter } from './cost.ts'

export interface Wanted {
  /** Used by this benchmark only: it is removed with everything in it. */
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
  /** In milliseconds, for tasks submitted one after another to an idle worker. */
  readonly submitToStart: { readonly tasks: number; readonly p50: number; readonly p99: number }
  /** `limited`: in a batch under `perGroup` and `concurrency`, ten tasks of each group. */
  readonly cost?: { readonly batch: Cost; readonly alone: Cost; readonly limited: Cost }
}

const TYPE = 'bench'
/** Submitted one after another: enough for a meaningful 99th percentile. */
const ALONE = 100
const REMOVERS = 50
/** Limits as they are usual; what they cost does not depend on the numbers, as long as tasks do not wait for places. */
const PER_GROUP = 2
const OF_EACH_GROUP = 10

/** Always removes what it created. */
export const measure = async (client: Client, wanted: Wanted): Promise<Measured> => {
  const bench = new Bench(client, wanted)
  try {
    return await bench.run()
  } finally {
    await bench.remove().catch((error: unknown) => {
      if (!isHoldfastError(error)) throw error
      const { code, message, details } = error
      throw new HoldfastError(
        code,
        `${message}. Some tasks could not be removed from queue ${wanted.queue}`,
        details,
        error,
      )
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
      const stop = (): void => reject(new HoldfastError('ABORTED', 'interrupted: there is no result'))
      signal.addEventListener('abort', stop, { once: true })
      if (signal.aborted) stop()
    })
    this.#interrupted.catch(() => {})
    const onTaskEnd = (_: unknown, error: Error | null): void => {
      if (error === null && --this.#left === 0) this.#ended.resolve()
    }
    this.#worker = client.worker({ queues: [queue], concurrency, hooks: { onTaskEnd } }).handle(TYPE, async () => {
      this.#startedAt = performance.now()
    })
  }

  async run(): Promise<Measured> {
    const { tasks, concurrency, meter } = this.#wanted
    this.#worker.start()
    // One-time costs of a process are not part of a task: the worker registers, the queue is created.
    await this.#alone()
    meter?.take(1)
    const { submitted, completed } = await this.#batch()
    const batch = meter?.take(tasks)
    const waits: number[] = []
    while (waits.length < Math.min(ALONE, tasks)) waits.push(await this.#alone())
    const alone = meter?.take(waits.length)
    const limited = meter === null ? undefined : await this.#limitedBatch(meter)
    waits.sort((a, b) => a - b)
    const at = (share: number): number => Math.round(waits[Math.ceil(waits.length * share) - 1]! * 100) / 100
    return {
      tasks,
      concurrency,
      submittedPerSecond: Math.round(tasks / submitted),
      completedPerSecond: Math.round(tasks / completed),
      submitToStart: { tasks: waits.length, p50: at(0.5), p99: at(0.99) },
      ...(batch && alone && limited && { cost: { batch, alone, limited } }),
    }
  }

  async #limitedBatch(meter: Meter): Promise<Cost> {
    const { queue, tasks, concurrency } = this.#wanted
    await this.#client.queue(queue).limit({ perGroup: PER_GROUP, concurrency })
    meter.take(1)
    await this.#batch((n) => ({ group: `group-${Math.floor(n / OF_EACH_GROUP)}` }))
    const cost = meter.take(tasks)
    await this.#client.queue(queue).limit(null)
    return cost
  }

  /** Seconds until all were submitted, and until all were completed. */
  async #batch(
    also: (n: number) => { readonly group?: string } = () => ({}),
  ): Promise<{ readonly submitted: number; readonly completed: number }> {
    const { queue, tasks } = this.#wanted
    const ended = this.#expect(tasks)
    const begun = performance.now()
    const items = Array.from({ length: tasks }, (_, n) => ({ type: TYPE, input: { n }, ...also(n) }))
    const results = await this.#client.submitMany(items, { queue })
    const submitted = (performance.now() - begun) / 1_000
    for (const result of results) this.#note(result.ok ? [result.task.id] : idsIn(result.error))
    for (const result of results) if (!result.ok) throw result.error
    await Promise.race([ended, this.#interrupted])
    return { submitted, completed: (performance.now() - begun) / 1_000 }
  }

  /** Runs one task to its end and returns how long it waited for its start, in milliseconds. */
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

  /** By id, which does not scan other tasks. */
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

/** The ids of tasks that may have been stored although the call failed. */
const idsIn = (error: unknown): readonly string[] =>
  isHoldfastError(error) && Array.isArray(error.details['ids']) ? (error.details['ids'] as string[]) : []
