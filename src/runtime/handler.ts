/** What the author of a handler sees: its signature, its context, and why its signal aborts. */
import type { Duration } from '../core/durations.ts'
import type { RescheduleError, RescheduleOptions } from '../core/failure.ts'
import type { Task } from '../core/task-view.ts'
import type { Client } from './client.ts'
import type { Logger } from './logger.ts'

/** Why a handler's signal aborted. */
export type AbortReason = 'timeout' | 'cancelled' | 'lease-lost' | 'shutdown'

/** `ctx.signal.reason`: branch on `kind`. */
export class AbortedError extends Error {
  override readonly name = 'AbortError'
  readonly kind: AbortReason

  constructor(kind: AbortReason) {
    super(`aborted: ${kind}`)
    this.kind = kind
  }
}

/** `Input` is the type as submitted, before the schema parsed it. */
export interface TaskContext<Input = unknown> {
  /** Its `input` is as submitted. The handler's first argument is the input after parsing. */
  readonly task: Task<Input>
  readonly client: Client
  /** Aborts with an AbortedError that says why. */
  readonly signal: AbortSignal
  /** Grows with every claim. Pass it along with writes to other systems, so that they can refuse a stale worker. */
  readonly fence: number
  /** The number of this run, starting at 1. */
  readonly attempt: number
  readonly workerId: string
  readonly log: Logger
  /** Visible to other processes within about half a second; the last value wins. */
  progress(value: unknown): void
  /** `return ctx.reschedule('60s')`: durable sleep. */
  reschedule(delay: Duration, options?: RescheduleOptions): RescheduleError
}

/** `Raw` is the input as submitted, where the schema transforms it. */
export type Handler<Input = unknown, Output = unknown, Raw = Input> = (
  input: Input,
  ctx: TaskContext<Raw>,
) => Output | RescheduleError | Promise<Output | RescheduleError>

export interface BatchOptions {
  /** Tasks in one call at the most: 1 to 1,000. */
  readonly size: number
  /** How long the first task waits for others. Default 0: what is there. Never longer than half a lease. */
  readonly wait?: Duration
}

/** Of a batch. `Input`: as the tasks were submitted. */
export interface BatchContext<Input = unknown> {
  readonly client: Client
  /** Aborts when the batch times out, when the worker stops, and when every task of it was cancelled or lost. */
  readonly signal: AbortSignal
  readonly workerId: string
  readonly log: Logger
  /** What belongs to one task: its own signal, fence, progress and log. */
  of(task: { readonly id: string }): TaskContext<Input>
}

/**
 * Gets up to `size` tasks, whose inputs have been parsed, and returns one result for each, in their order: a value, or an Error, which fails
 * that task alone.
 */
export type BatchHandler<Input = unknown, Output = unknown, Raw = Input> = (
  tasks: readonly Task<Input>[],
  ctx: BatchContext<Raw>,
) => readonly (Output | Error)[] | Promise<readonly (Output | Error)[]>
