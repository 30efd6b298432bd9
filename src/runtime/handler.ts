/** What the author of a handler sees: its signature, its context, and why its signal aborts. */
import type { StandardSchemaV1 } from '@standard-schema/spec'
import type { RescheduleError, RescheduleOptions } from '../core/failure.ts'
import type { Task } from '../core/observe/task-view.ts'
import type { ShownStep } from '../core/steps/journal.ts'
import type { Duration } from '../core/values/durations.ts'
import type { Client } from './client.ts'
import type { Transaction } from './definition.ts'
import type { Logger } from './telemetry/logger.ts'

/** Why a handler's signal aborted. */
export type AbortReason = 'timeout' | 'cancelled' | 'lease-lost' | 'shutdown' | 'parked'

/** `ctx.signal.reason`: branch on `kind`. */
export class AbortedError extends Error {
  override readonly name = 'AbortError'
  readonly kind: AbortReason

  constructor(kind: AbortReason) {
    super(`aborted: ${kind}`)
    this.kind = kind
  }
}

/** What the function of a step gets. */
export interface StepContext {
  /** The same in every run of this step: pass it to other systems as an idempotency key. */
  readonly key: string
}

/** The handler's own open transaction, on PostgreSQL or SQLite: what is written commits with it, or not at all. */
export interface InTransaction {
  /** A transaction of yours that is open on the database of the store. */
  readonly tx: Transaction
}

/** Options of `ctx.waitFor`. */
export interface WaitForOptions<Value = unknown> {
  /** The name of the signal. Default: the name of the step. */
  readonly signal?: string
  /** After this time it throws `SignalTimeout`. Default: it waits forever. */
  readonly timeout?: Duration
  /** Any Standard Schema. A value that it refuses is taken, and throws `SignalInvalid`. */
  readonly schema?: StandardSchemaV1<unknown, Value>
}

/** `Input` is the type as submitted, before the schema parsed it. */
export interface TaskContext<Input = unknown> {
  /** Its `input` is as submitted. The handler's first argument is the input after parsing. */
  readonly task: Task<Input>
  /** The client of the worker: to submit, read and wait for other tasks. */
  readonly client: Client
  /** Aborts with an AbortedError that says why. */
  readonly signal: AbortSignal
  /** Grows with every claim. Pass it along with writes to other systems, so that they can refuse a stale worker. */
  readonly fence: number
  /** The number of this run, starting at 1. */
  readonly attempt: number
  /** As histories show it. */
  readonly workerId: string
  /** Adds the task's id, type and attempt to each line. */
  readonly log: Logger
  /** Visible to other processes within about half a second; the last value wins. */
  progress(value: unknown): void
  /**
   * Runs `run` and stores its result before it resolves. Every later run of the task returns the stored result instead. Each name is used once in
   * a run. The result is stored as JSON.
   */
  step<Value>(name: string, run: (step: StepContext) => Value | Promise<Value>, options?: InTransaction): Promise<Value>
  /**
   * Completes the task in the handler's own transaction, as its last statement: your rows and the end of the task are committed
   * together or not at all. The value that the handler returns afterwards is ignored. On SQLite it throws at once.
   */
  complete(output: unknown, options: InTransaction): Promise<void>
  /** Frees the slot and ends this run; the handler starts again from the top when the time has passed, and then this resolves at once. */
  sleep(name: string, duration: Duration): Promise<void>
  /** Ends this run, as `sleep` does, until `client.signal(id, signal, value)` is called. Resolves with the value. */
  waitFor<Value = unknown>(name: string, options?: WaitForOptions<Value>): Promise<Value>
  /** What earlier runs and this one have recorded. */
  steps(): Promise<readonly ShownStep[]>
  /** `return ctx.reschedule('60s')`: durable sleep. */
  reschedule(delay: Duration, options?: RescheduleOptions): RescheduleError
}

/** `Raw` is the input as submitted, where the schema transforms it. */
export type Handler<Input = unknown, Output = unknown, Raw = Input> = (
  input: Input,
  ctx: TaskContext<Raw>,
) => Output | RescheduleError | Promise<Output | RescheduleError>

/** How many tasks a batch has, and how long its first task waits for others. */
export interface BatchOptions {
  /** The most tasks in one call: 1 to 1,000. */
  readonly size: number
  /** How long the first task waits for others. Default 0: it starts with the tasks that are there. Never longer than half a lease. */
  readonly wait?: Duration
}

/** Of a batch. `Input`: as the tasks were submitted. */
export interface BatchContext<Input = unknown> {
  /** The client of the worker. */
  readonly client: Client
  /** Aborts when the batch times out, when the worker stops, and when every task of it was cancelled or lost. */
  readonly signal: AbortSignal
  /** As histories show it. */
  readonly workerId: string
  /** Adds the type and the number of tasks to each line. */
  readonly log: Logger
  /** The context of one task: its own signal, fence, progress and log. */
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
