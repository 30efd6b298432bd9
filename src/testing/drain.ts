/** Runs everything that is due, inline in the caller's test. */
import type { Handler } from '../runtime/attempt.ts'
import type { Client } from '../runtime/client.ts'
import type { TaskDefinition } from '../runtime/definition.ts'
import type { MoveEvent } from '../runtime/events.ts'
import type { Worker } from '../runtime/worker.ts'
import type { WorkerOptions } from '../runtime/worker-options.ts'
import type { FakeClock } from './fake-clock.ts'

/** By type; or, where the definitions are at hand, as pairs of definition and handler. */
export type Handlers = Readonly<Record<string, Handler>> | readonly (readonly [TaskDefinition, Handler])[]

export interface DrainOptions extends WorkerOptions {
  /** Moves this clock on to whatever is scheduled or in backoff, until nothing is left. Without it: only what is due now. */
  readonly clock?: FakeClock
  /** How often time may be moved: a task that reschedules itself for ever would never end. Default 1,000. */
  readonly mostRounds?: number
}

/** What happened, in order. Handlers run in this process, one drain at a time. */
export const drain = async (
  client: Client,
  handlers: Handlers,
  options: DrainOptions = {},
): Promise<readonly MoveEvent[]> => {
  const { clock, mostRounds = 1_000, ...workerOptions } = options
  const moves: MoveEvent[] = []
  const stopListening = client.onMove((event) => moves.push(event))
  try {
    for (let round = 0; ; round++) {
      await withHandlers(client.worker(workerOptions), handlers).drain()
      const next =
        clock === undefined ? null : await nextInstant(client, typesOf(handlers), workerOptions.queues ?? ['default'])
      if (clock === undefined || next === null) return moves
      if (round === mostRounds)
        throw new Error(
          `after ${mostRounds} rounds there is still something scheduled: does a task reschedule itself for ever?`,
        )
      await clock.advanceTo(Math.max(next, clock.wall()))
    }
  } finally {
    stopListening()
  }
}

const isPairs = (handlers: Handlers): handlers is readonly (readonly [TaskDefinition, Handler])[] =>
  Array.isArray(handlers)

const withHandlers = (worker: Worker, handlers: Handlers): Worker => {
  if (isPairs(handlers)) for (const [definition, handler] of handlers) worker.handle(definition, handler)
  else for (const [type, handler] of Object.entries(handlers)) worker.handle(type, handler)
  return worker
}

const typesOf = (handlers: Handlers): readonly string[] =>
  isPairs(handlers) ? handlers.map(([{ type }]) => type) : Object.keys(handlers)

/** When the first of the tasks that these handlers could run falls due, or expires. */
const nextInstant = async (
  client: Client,
  types: readonly string[],
  queues: readonly string[],
): Promise<number | null> => {
  let next = Number.POSITIVE_INFINITY
  for (const queue of queues) {
    if (await client.queue(queue).isPaused()) continue
    for (const type of types) {
      for await (const task of allOf(client, queue, type))
        next = Math.min(next, task.availableAt, task.expiresAt ?? Number.POSITIVE_INFINITY)
    }
  }
  return next === Number.POSITIVE_INFINITY ? null : next
}

async function* allOf(client: Client, queue: string, type: string) {
  let cursor: string | null = null
  do {
    const page: Awaited<ReturnType<Client['list']>> = await client.list({
      queue,
      type,
      status: 'scheduled',
      limit: 1_000,
      ...(cursor === null ? null : { cursor }),
    })
    yield* page.tasks
    cursor = page.cursor
  } while (cursor !== null)
}
