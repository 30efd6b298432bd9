/** One run of one task: its lease, its handler, and its outcome. */
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
import type { BatchRun } from './batch-run.ts'

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
  /** Its signal has aborted, or its child is being killed. */
  aborted(attempt: Attempt): void
  /** An isolated run has started in its child: its timeout counts from now. */
  begun(attempt: Attempt): void
  /** Calls it outside of what a middleware keeps for one run (AsyncLocalStorage). */
  outside<T>(work: () => T): T
  /** JSON changed the output, or the output could not be stored. */
  outputChanged(attempt: Attempt, output: Output): void
}

export class Attempt implements TaskContext {
  readonly record: TaskRecord
  readonly token: string
  /** Monotonic: when its claim was sent. Its lease began no earlier. */
  readonly claimedAt: number
  /** Monotonic: when the last successful renewal was sent. */
  renewedAt: number
  /** Monotonic: the end of this run's time limit; null: no limit. */
  until: number | null = null
  /** Its slot on the heartbeat's board. */
  slot = -1
  isSettled = false
  /** The end has been written (a timeout) or need not be: a later result of the handler is ignored. */
  isWritten = false
  isTimedOut = false
  /** Set while an isolated run can be killed. */
  killer: (() => void) | null = null
  isKilled = false
  /** Set if it runs with others in one call. */
  batch: BatchRun | null = null
  /** For the hooks: what the handler threw, or why it was stopped. */
  failure: { readonly error: unknown } | null = null
  readonly #host: AttemptHost
  #task: Task | null = null
  #controller: AbortController | null = null
  #aborted: AbortReason | null = null

  constructor(record: TaskRecord, host: AttemptHost, claimedAt: number) {
    this.record = record
    this.token = record.lease!.token
    this.claimedAt = claimedAt
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
    this.batch?.told(reason)
  }

  loseLease(): void {
    this.abort('lease-lost')
    this.kill()
  }

  /** Kills an isolated run, which settles when its child is dead. Returns false if there is nothing to kill. */
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

  /** Runs the handler and calls `done` once with the outcome. A callback, because promises dominate the cost at full throughput. */
  run(definition: TaskDefinition, handler: Handler, done: (attempt: Attempt, outcome: Outcome) => void): void {
    const settled = (outcome: Outcome): void => {
      // A thenable that is not a promise may settle twice.
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

  /** The handler has done its work: an issue of the output schema is recorded next to the value and does not fail the run. */
  async #checked(definition: TaskDefinition, output: Output, returned: unknown): Promise<Outcome> {
    try {
      await checkSchema(definition.output, returned === undefined ? null : returned, 'output', 'OUTPUT_INVALID')
      return this.#completed(output)
    } catch (complaint) {
      return this.#completed(withComplaint(output, complaint))
    }
  }
}

/** null if the value is not a request to reschedule. */
const rescheduleOutcome = (value: unknown): Outcome | null => {
  const wish = rescheduleWish(value)
  if (wish === null) return null
  return wish instanceof Error ? { kind: 'fail', error: wish, permanent: false } : { kind: 'reschedule', wish }
}

/** An output that could not be stored is null; its reason is recorded elsewhere. */
const decoded = ({ text, encoding }: Output): unknown => (text === null ? null : decodePayload(text, encoding))

const isThenable = (value: unknown): value is PromiseLike<unknown> =>
  typeof (value as PromiseLike<unknown> | null)?.then === 'function'

/** Fails permanently: a stored input that is not JSON is damaged. */
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

/** Fails permanently: an input that its schema refuses is refused on every retry. */
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
