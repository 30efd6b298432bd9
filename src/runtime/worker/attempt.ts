/** One run of one task: its lease, its handler, and its outcome. */

import { HoldfastError } from '../../core/errors.ts'
import {
  isPermanent,
  PermanentError,
  RescheduleError,
  type RescheduleOptions,
  type RescheduleWish,
  rescheduleWish,
} from '../../core/failure.ts'
import { Task } from '../../core/observe/task-view.ts'
import type { ShownStep } from '../../core/steps/journal.ts'
import type { Change, TaskRecord } from '../../core/task.ts'
import type { Duration } from '../../core/values/durations.ts'
import { isInstance } from '../../core/values/error-facts.ts'
import { checkOptionNames } from '../../core/values/option-names.ts'
import { EncodedOutput, encodeOutput, type Output, withComplaint } from '../../core/values/output.ts'
import { decodePayload, encodePayload } from '../../core/values/payload.ts'
import { isThenable } from '../../core/values/thenable.ts'
import type { Client } from '../client.ts'
import { checkSchema, type TaskDefinition } from '../definition.ts'
import type { AbortReason, Handler, InTransaction, StepContext, TaskContext, WaitForOptions } from '../handler.ts'
import { type Logger, withFacts } from '../telemetry/logger.ts'
import { AbortOnce } from './abort-once.ts'
import type { BatchRun } from './batch-run.ts'
import { completeIn, type JoinedEnd } from './steps/in-transaction.ts'
import { Steps, type StepsHost } from './steps/steps.ts'
import { mayOutliveRun } from './steps/values.ts'

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
  readonly steps: StepsHost
}

export class Attempt implements TaskContext {
  /** As claimed, and as this run has changed it since. */
  record: TaskRecord
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
  /** The park is written. */
  isParked = false
  /** A transaction of the handler has joined this run, and may hold the row of its task. */
  hasJoined = false
  /** The end of this run, if the last transaction that wrote it was committed. */
  joinedEnd: JoinedEnd | null = null
  readonly #host: AttemptHost
  #steps: Steps | null = null
  #task: Task | null = null
  readonly #abort = new AbortOnce()
  #definition: TaskDefinition | null = null

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

  get signal(): AbortSignal {
    return this.#abort.signal
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

  step<Value>(
    name: string,
    run: (step: StepContext) => Value | Promise<Value>,
    options?: InTransaction,
  ): Promise<Value> {
    const value = options === undefined ? this.durable.step(name, run) : this.durable.stepIn(name, run, options)
    return mayOutliveRun(value) as Promise<Value>
  }

  complete(output: unknown, options: InTransaction): Promise<void> {
    checkOptionNames(options, ['tx'], 'complete')
    this.durable.mustGoOn()
    return completeIn(this.#host.steps.session, this, this.#outputNow(output), options)
  }

  sleep(name: string, duration: Duration): Promise<void> {
    return this.durable.sleep(name, duration)
  }

  waitFor<Value = unknown>(name: string, options?: WaitForOptions<Value>): Promise<Value> {
    return this.durable.waitFor(name, options) as Promise<Value>
  }

  steps(): Promise<readonly ShownStep[]> {
    return this.durable.list()
  }

  // ── what the worker does ─────────────────────────────────────────────────────────────────────────────────────

  /** Made when a step is first used: most handlers have none. */
  get durable(): Steps {
    this.#steps ??= new Steps(this, this.#host.steps)
    return this.#steps
  }

  /** A write is under way that may park the task. */
  get isParking(): boolean {
    return this.#steps?.isParking ?? false
  }

  /** A step has not ended: its handler did not wait for it. */
  get hasStepUnderWay(): boolean {
    return this.#steps?.isUnderWay ?? false
  }

  get abortedFor(): AbortReason | null {
    return this.#abort.reason
  }

  /** The first reason stands. */
  abort(reason: AbortReason): void {
    if (this.abortedFor !== null || this.isSettled) return
    this.#abort.abort(reason)
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
    if (this.abortedFor === null) this.#host.begun(this)
  }

  /** Runs the handler and calls `done` once with the outcome. A callback, because promises dominate the cost at full throughput. */
  run(definition: TaskDefinition, handler: Handler, done: (attempt: Attempt, outcome: Outcome) => void): void {
    this.#definition = definition
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

  /** For a transaction, which cannot wait for an asynchronous schema. */
  #outputNow(value: unknown): Output {
    const output = encodeOutput(value, this.#host.maxPayload)
    if (output.changed !== undefined || output.error !== undefined) this.#host.outputChanged(this, output)
    const schema = this.#definition?.output ?? null
    if (schema === null) return output
    const checked = complaintOf(() =>
      checkSchema(schema, value === undefined ? null : value, 'output', 'OUTPUT_INVALID'),
    )
    if (!isThenable(checked)) return checked === null ? output : withComplaint(output, checked)
    checked.then(undefined, () => {})
    throw new HoldfastError(
      'INVALID_OPTION',
      'tx cannot be used with a schema that validates asynchronously: the transaction would be over',
      { field: 'tx' },
    )
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

/** No write may wait for a transaction of the handler: other tasks' writes would wait with it. */
export const besideJoined = ({ hasJoined }: Attempt, change: Change): Change =>
  hasJoined ? { ...change, passesLocked: true } : change

/** null if the value is not a request to reschedule. */
const rescheduleOutcome = (value: unknown): Outcome | null => {
  const wish = rescheduleWish(value)
  if (wish === null) return null
  return wish instanceof Error ? { kind: 'fail', error: wish, permanent: false } : { kind: 'reschedule', wish }
}

/** What the schema says against the value; null: nothing. A promise if it is asynchronous. */
const complaintOf = (check: () => unknown): unknown => {
  try {
    const checked = check()
    return isThenable(checked) ? checked : null
  } catch (complaint) {
    return complaint
  }
}

/** An output that could not be stored is null; its reason is recorded elsewhere. */
const decoded = ({ text, encoding }: Output): unknown => (text === null ? null : decodePayload(text, encoding))

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
