/** Runs all due tasks, inline in the caller's test. */

import type { Client } from '../runtime/client.ts'
import type { TaskDefinition } from '../runtime/definition.ts'
import type { Handler } from '../runtime/handler.ts'
import type { MoveEvent } from '../runtime/telemetry/events.ts'
import type { WorkerOptions } from '../runtime/worker/options.ts'
import type { Worker } from '../runtime/worker/worker.ts'
import type { FakeClock } from './fake-clock.ts'

/** Handlers by type, or pairs of definition and handler. */
export type Handlers = Readonly<Record<string, Handler>> | readonly (readonly [TaskDefinition, Handler])[]

/** The handler that fits a definition. */
type HandlerOf<D> =
  D extends TaskDefinition<infer Input, infer Parsed, infer Output> ? Handler<Parsed, Output, Input> : never

// biome-ignore lint/suspicious/noExplicitAny: every definition is one of these, whatever its types
type Definitions = readonly TaskDefinition<any, any, any>[]

/** Options of the testing kit's `drain`: its clock, and when it stops. */
export interface DrainOptions extends WorkerOptions {
  /** By name: sent to each task that waits for that signal, before time advances. */
  readonly signals?: Readonly<Record<string, unknown>>
  /** Advances this clock to scheduled tasks, sleeping ones and those in backoff until none is left. Without it, only due tasks run. */
  readonly clock?: FakeClock
  /** How often time may advance: a task that reschedules itself forever would never end. Default 1,000. */
  readonly mostRounds?: number
}

/** Returns the moves in order. Handlers run in this process, one drain at a time. */
export function drain<const Defs extends Definitions>(
  client: Client,
  handlers: { readonly [K in keyof Defs]: readonly [Defs[K], HandlerOf<Defs[K]>] },
  options?: DrainOptions,
): Promise<readonly MoveEvent[]>
export function drain(
  client: Client,
  handlers: Readonly<Record<string, Handler>>,
  options?: DrainOptions,
): Promise<readonly MoveEvent[]>
export async function drain(
  client: Client,
  handlers: Handlers,
  options: DrainOptions = {},
): Promise<readonly MoveEvent[]> {
  const { clock, mostRounds = 1_000, signals = {}, ...workerOptions } = options
  const queues = workerOptions.queues ?? ['default']
  const moves: MoveEvent[] = []
  const stopListening = client.onMove((event) => moves.push(event))
  try {
    for (let round = 0; ; round++) {
      await withHandlers(client.worker(workerOptions), handlers).drain()
      if (await sendSignals(client, typesOf(handlers), queues, signals)) continue
      const next = clock === undefined ? null : await nextInstant(client, typesOf(handlers), queues)
      if (clock === undefined || next === null) return moves
      if (round === mostRounds)
        throw new Error(
          `after ${mostRounds} rounds there is still something scheduled: does a task reschedule itself forever?`,
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

/** True if a task was sent one. */
const sendSignals = async (
  client: Client,
  types: readonly string[],
  queues: readonly string[],
  signals: Readonly<Record<string, unknown>>,
): Promise<boolean> => {
  let isSent = false
  if (Object.keys(signals).length === 0) return false
  for (const queue of queues)
    for (const type of types)
      for await (const { id, parked } of allOf(client, queue, type, 'parked')) {
        const awaited = [parked?.signal, ...(parked?.signals ?? [])].find(
          (name) => name !== undefined && Object.hasOwn(signals, name),
        )
        if (awaited === undefined) continue
        await client.signal(id, awaited, signals[awaited])
        isSent = true
      }
  return isSent
}

/** The earliest instant at which a task of these handlers becomes due or expires. */
const nextInstant = async (
  client: Client,
  types: readonly string[],
  queues: readonly string[],
): Promise<number | null> => {
  let next = Number.POSITIVE_INFINITY
  for (const queue of queues) {
    if (await client.queue(queue).isPaused()) continue
    for (const type of types) {
      for (const status of ['scheduled', 'parked'])
        for await (const task of allOf(client, queue, type, status)) {
          const due = task.parked !== null && task.parked.until === null ? Number.POSITIVE_INFINITY : task.availableAt
          next = Math.min(next, due, task.expiresAt ?? Number.POSITIVE_INFINITY)
        }
    }
  }
  return next === Number.POSITIVE_INFINITY ? null : next
}

async function* allOf(client: Client, queue: string, type: string, status: string) {
  let cursor: string | null = null
  do {
    const page: Awaited<ReturnType<Client['list']>> = await client.list({
      queue,
      type,
      status,
      limit: 1_000,
      ...(cursor === null ? null : { cursor }),
    })
    yield* page.tasks
    cursor = page.cursor
  } while (cursor !== null)
}
