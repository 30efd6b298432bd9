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

/** `Input`: as it was submitted, before its schema parsed it. */
export interface TaskContext<Input = unknown> {
  /** Its `input` is the one that was submitted; what the schema made of it is the handler's first argument. */
  readonly task: Task<Input>
  readonly client: Client
  /** Aborts with an AbortedError that says why. */
  readonly signal: AbortSignal
  /** Grows with every claim: guard your own writes elsewhere with it. */
  readonly fence: number
  /** Which run this is, from 1. */
  readonly attempt: number
  readonly workerId: string
  readonly log: Logger
  /** Shown to others within about half a second; the last value wins. */
  progress(value: unknown): void
  /** `return ctx.reschedule('60s')`: durable sleep. */
  reschedule(delay: Duration, options?: RescheduleOptions): RescheduleError
}

/** `Raw`: the input as it was submitted, where the schema makes something else of it. */
export type Handler<Input = unknown, Output = unknown, Raw = Input> = (
  input: Input,
  ctx: TaskContext<Raw>,
) => Output | RescheduleError | Promise<Output | RescheduleError>
