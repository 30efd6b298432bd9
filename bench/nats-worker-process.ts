/** A worker process of bench/nats-workers.ts: runs no-op tasks and reports how many have ended. */
import type { Client } from '../src/index.ts'
import { cpuSeconds, send, serve } from './deployment/serve.ts'
import { loadHoldfast } from './systems/holdfast.ts'

export interface WorkerUse {
  readonly address: string
  readonly types: readonly string[]
  readonly queues: readonly string[]
  readonly concurrency: number
  /** Warm-up tasks from this process's own queue: a deployed worker is warm. */
  readonly warmUp: number
}

/** Counts are sent no more often than this. */
const REPORT_MS = 10

let client: Client
let worker: ReturnType<Client['worker']>
let ended = 0
let warmedUp = 0
let handled: readonly string[] = []
const ownQueue = `warm-up-${process.pid}`
let isReportDue = false

const report = (): void => {
  if (isReportDue) return
  isReportDue = true
  setTimeout(() => {
    isReportDue = false
    send({ note: ended - warmedUp })
  }, REPORT_MS)
}

const verbs = {
  /** Resolves when the worker is at work and warm. */
  async open({ address, types, queues, concurrency, warmUp }: WorkerUse): Promise<void> {
    const holdfast = await loadHoldfast()
    client = await holdfast.connect(address, { create: true, logger: holdfast.silentLogger })
    handled = types
    await client.submitMany(
      Array.from({ length: warmUp }, (_, n) => ({ type: types[n % types.length]!, input: { n }, queue: ownQueue })),
    )
    const warm = Promise.withResolvers<void>()
    const onTaskEnd = (): void => {
      if (++ended === warmUp) warm.resolve()
      if (ended > warmUp) report()
    }
    worker = client.worker({ queues: warmUp === 0 ? queues : [ownQueue, ...queues], concurrency, hooks: { onTaskEnd } })
    for (const type of types) worker.handle(type, () => null)
    worker.start()
    if (warmUp > 0) await warm.promise
    warmedUp = warmUp
  },

  /** Makes this process see the resumed queues now instead of with its next poll. */
  async go({ queue }: { readonly queue: string }): Promise<void> {
    await client.queue(queue).isPaused()
    // It rests until something happens in this process.
    await client.submit(handled[0]!, null, { queue: ownQueue })
    warmedUp++
  },

  cpuSeconds,

  async close(): Promise<void> {
    await worker.stop()
    await client.close()
  },
}

export type WorkerVerbs = typeof verbs

serve(verbs)
