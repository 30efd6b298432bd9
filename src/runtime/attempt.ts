/** One task, one attempt: a lease in hand, a handler, and how it ended. */
import type { Duration } from '../core/durations.ts'
import { HoldfastError } from '../core/errors.ts'
import { isPermanent, isReschedule, PermanentError, RescheduleError, type RescheduleOptions } from '../core/failure.ts'
import { decodePayload, encodePayload, type Payload } from '../core/payload.ts'
import { Task } from '../core/snapshot.ts'
import type { TaskRecord } from '../core/task.ts'
import type { Client } from './client.ts'
import { checkSchema, type TaskDefinition } from './definition.ts'
import { type Logger, withFacts } from './logger.ts'

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

export interface TaskContext<Input = unknown> {
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

export type Handler<Input = unknown, Output = unknown> = (
  input: Input,
  ctx: TaskContext<Input>,
) => Output | RescheduleError | Promise<Output | RescheduleError>

export type Outcome =
  | { readonly kind: 'complete'; readonly output: Payload }
  | { readonly kind: 'reschedule'; readonly wish: RescheduleError }
  | { readonly kind: 'fail'; readonly error: unknown; readonly permanent: boolean }

/** What an attempt needs of the worker around it. */
export interface AttemptHost {
  readonly client: Client
  readonly workerId: string
  readonly logger: Logger
  readonly maxPayload: number
  progress(attempt: Attempt, text: string): void
}

export class Attempt implements TaskContext {
  readonly record: TaskRecord
  readonly token: string
  /** Monotonic: when the renewal that last succeeded was sent. */
  renewedAt: number
  /** Monotonic: this run may not go on past it; null: no limit. */
  until: number | null = null
  /** Its place on the heartbeat's board. */
  slot = -1
  isSettled = false
  /** The outcome was written already (a timeout), or need not be: what the handler says now counts for nothing. */
  isWritten = false
  readonly #host: AttemptHost
  #task: Task | null = null
  #controller: AbortController | null = null
  #aborted: AbortReason | null = null

  constructor(record: TaskRecord, host: AttemptHost, claimedAt: number) {
    this.record = record
    this.token = record.lease!.token
    this.renewedAt = claimedAt
    this.#host = host
  }

  // ── what the handler sees ────────────────────────────────────────────────────────────────────────────────────

  get task(): Task {
    this.#task ??= new Task(this.record)
    return this.#task
  }

  get client(): Client {
    return this.#host.client
  }

  /** Made only when somebody looks: most handlers never do. */
  get signal(): AbortSignal {
    if (this.#controller === null) {
      this.#controller = new AbortController()
      if (this.#aborted !== null) this.#controller.abort(new AbortedError(this.#aborted))
    }
    return this.#controller.signal
  }

  get fence(): number {
    return this.record.attempts
  }

  get attempt(): number {
    return this.record.attempts
  }

  get workerId(): string {
    return this.#host.workerId
  }

  get log(): Logger {
    const { id, type, attempts } = this.record
    return withFacts(this.#host.logger, { task: id, type, attempt: attempts })
  }

  progress(value: unknown): void {
    const { text } = encodePayload(value, 'progress', this.#host.maxPayload)
    if (!this.isSettled) this.#host.progress(this, text)
  }

  reschedule(delay: Duration, options: RescheduleOptions = {}): RescheduleError {
    return new RescheduleError(delay, options)
  }

  // ── what the worker does ─────────────────────────────────────────────────────────────────────────────────────

  get abortedFor(): AbortReason | null {
    return this.#aborted
  }

  /** The first reason stands. */
  abort(reason: AbortReason): void {
    if (this.#aborted !== null || this.isSettled) return
    this.#aborted = reason
    this.#controller?.abort(new AbortedError(reason))
  }

  loseLease(): void {
    this.abort('lease-lost')
  }

  /** Runs the handler and calls `done` once with how it ended. By callback: at full speed, promises are what costs. */
  run(definition: TaskDefinition, handler: Handler, done: (attempt: Attempt, outcome: Outcome) => void): void {
    const settled = (outcome: Outcome): void => {
      // A thenable that is no promise may settle twice.
      if (this.isSettled) return
      this.isSettled = true
      done(this, outcome)
    }
    const returned = (value: unknown): void | Promise<void> => {
      if (isReschedule(value)) return settled({ kind: 'reschedule', wish: value })
      if (definition.output === null) return settled(this.#completed(value))
      return this.#checked(definition, value).then(settled)
    }
    const threw = (error: unknown): void =>
      settled(
        isReschedule(error)
          ? { kind: 'reschedule', wish: error }
          : { kind: 'fail', error, permanent: isPermanent(error) },
      )
    try {
      const input = readInput(this.record)
      const running =
        definition.input === null
          ? handler(input, this)
          : parseInput(definition, input).then((parsed) => handler(parsed, this))
      if (isThenable(running)) running.then(returned, threw)
      else void returned(running)
    } catch (error) {
      threw(error)
    }
  }

  #completed(returned: unknown): Outcome {
    try {
      return {
        kind: 'complete',
        output: encodePayload(
          returned === undefined ? null : returned,
          'output',
          this.#host.maxPayload,
          'OUTPUT_INVALID',
        ),
      }
    } catch (cause) {
      return invalidOutput(cause)
    }
  }

  async #checked(definition: TaskDefinition, returned: unknown): Promise<Outcome> {
    try {
      await checkSchema(definition.output, returned === undefined ? null : returned, 'output', 'OUTPUT_INVALID')
      return this.#completed(returned)
    } catch (cause) {
      return invalidOutput(cause)
    }
  }
}

const isThenable = (value: unknown): value is PromiseLike<unknown> =>
  typeof (value as PromiseLike<unknown> | null)?.then === 'function'

/** Trying again would give the same: the task fails for good. */
const invalidOutput = (cause: unknown): Outcome => {
  const message = cause instanceof Error ? cause.message : String(cause)
  return {
    kind: 'fail',
    error: new HoldfastError('OUTPUT_INVALID', `OUTPUT_INVALID: ${message}`, {}, cause),
    permanent: true,
  }
}

/** A stored input that is no longer JSON is damaged for good. */
const readInput = ({ input, encoding }: TaskRecord): unknown => {
  try {
    return decodePayload(input, encoding)
  } catch (error) {
    throw new PermanentError(
      `the stored input cannot be read: ${error instanceof Error ? error.message : String(error)}`,
      { cause: error },
    )
  }
}

/** An input that its schema refuses will not get better by trying again. */
const parseInput = async (definition: TaskDefinition, input: unknown): Promise<unknown> => {
  try {
    return (await checkSchema(definition.input, input, 'input', 'INVALID_TASK')).value
  } catch (error) {
    throw new PermanentError(
      `the stored input does not fit the schema: ${error instanceof Error ? error.message : String(error)}`,
      { cause: error },
    )
  }
}
