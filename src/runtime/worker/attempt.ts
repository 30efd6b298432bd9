/** One task, one attempt: a lease in hand, a handler, and how it ended. */
import type { Duration } from '../../core/durations.ts'
import { isInstance } from '../../core/error-facts.ts'
import {
  isPermanent,
  PermanentError,
  RescheduleError,
  type RescheduleOptions,
  type RescheduleWish,
  rescheduleWish,
} from '../../core/failure.ts'
import { EncodedOutput, encodeOutput, type Output, withComplaint } from '../../core/output.ts'
import { decodePayload, encodePayload } from '../../core/payload.ts'
import type { TaskRecord } from '../../core/task.ts'
import { Task } from '../../core/task-view.ts'
import type { Client } from '../client.ts'
import { checkSchema, type TaskDefinition } from '../definition.ts'
import { AbortedError, type AbortReason, type Handler, type TaskContext } from '../handler.ts'
import { type Logger, withFacts } from '../logger.ts'

export type Outcome =
  | { readonly kind: 'complete'; readonly output: Output }
  | { readonly kind: 'reschedule'; readonly wish: RescheduleWish }
  | { readonly kind: 'fail'; readonly error: unknown; readonly permanent: boolean }

/** What an attempt needs of the worker around it. */
export interface AttemptHost {
  readonly client: Client
  readonly workerId: string
  readonly logger: Logger
  readonly maxPayload: number
  progress(attempt: Attempt, text: string): void
  /** It has been told to stop, or it is being killed. */
  aborted(attempt: Attempt): void
  /** An isolated run begins only now: its timeout counts from here. */
  begun(attempt: Attempt): void
  /** The output was kept changed, or not at all. */
  outputChanged(attempt: Attempt, output: Output): void
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
  isTimedOut = false
  /** Set while an isolated run can be killed. */
  killer: (() => void) | null = null
  isKilled = false
  /** What the handler threw, or why it was stopped: for the hooks. */
  failure: { readonly error: unknown } | null = null
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

  /** Created on first access: most handlers never use it. */
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
    this.#host.aborted(this)
  }

  loseLease(): void {
    this.abort('lease-lost')
    this.kill()
  }

  /** An isolated run is killed, and settles when it is dead. False: there is nothing to kill. */
  kill(): boolean {
    if (this.killer === null) return false
    this.isKilled = true
    this.killer()
    this.#host.aborted(this)
    return true
  }

  begun(): void {
    if (this.#aborted === null) this.#host.begun(this)
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
      const outcome = rescheduleOutcome(value)
      if (outcome !== null) return settled(outcome)
      const encoded = isInstance(value, EncodedOutput) ? value.output : null
      const output = encoded ?? encodeOutput(value, this.#host.maxPayload)
      if (definition.output === null) return settled(this.#completed(output))
      return this.#checked(definition, output, encoded === null ? value : decoded(encoded)).then(settled)
    }
    const threw = (error: unknown): void =>
      settled(rescheduleOutcome(error) ?? { kind: 'fail', error, permanent: isPermanent(error) })
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

  #completed(output: Output): Outcome {
    if (output.changed !== undefined || output.error !== undefined) this.#host.outputChanged(this, output)
    return { kind: 'complete', output }
  }

  /** The effect has happened: a complaint of the schema is recorded beside the value. */
  async #checked(definition: TaskDefinition, output: Output, returned: unknown): Promise<Outcome> {
    try {
      await checkSchema(definition.output, returned === undefined ? null : returned, 'output', 'OUTPUT_INVALID')
      return this.#completed(output)
    } catch (complaint) {
      return this.#completed(withComplaint(output, complaint))
    }
  }
}

/** null: it was neither thrown nor returned to reschedule. */
const rescheduleOutcome = (value: unknown): Outcome | null => {
  const wish = rescheduleWish(value)
  if (wish === null) return null
  return wish instanceof Error ? { kind: 'fail', error: wish, permanent: false } : { kind: 'reschedule', wish }
}

/** What could not be kept has its reason already. */
const decoded = ({ text, encoding }: Output): unknown => (text === null ? null : decodePayload(text, encoding))

const isThenable = (value: unknown): value is PromiseLike<unknown> =>
  typeof (value as PromiseLike<unknown> | null)?.then === 'function'

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
