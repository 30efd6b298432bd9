/** The handler context inside a child. It reports to the worker with messages. */

import { HoldfastError } from '../../../core/errors.ts'
import { RescheduleError, type RescheduleOptions } from '../../../core/failure.ts'
import { Task } from '../../../core/observe/task-view.ts'
import type { ShownStep } from '../../../core/steps/journal.ts'
import type { Duration } from '../../../core/values/durations.ts'
import { encodePayload } from '../../../core/values/payload.ts'
import type { Client } from '../../client.ts'
import { type Cancel, systemClock } from '../../clock.ts'
import {
  AbortedError,
  type AbortReason,
  type InTransaction,
  type StepContext,
  type TaskContext,
  type WaitForOptions,
} from '../../handler.ts'
import type { Logger } from '../../telemetry/logger.ts'
import type { FromChild, LogLevel, ToChild } from './protocol.ts'
import { RemoteSteps } from './remote-steps.ts'

type RunMessage = Extract<ToChild, { readonly kind: 'run' }>

/** A handler that reports progress in a tight loop sends at most once in this time; the last value wins. */
const PROGRESS_EVERY = 100

export class IsolatedContext implements TaskContext {
  readonly remote: RemoteSteps
  readonly task: Task
  readonly workerId: string
  readonly log: Logger
  readonly #message: RunMessage
  readonly #send: (message: FromChild) => void
  readonly #controller = new AbortController()
  #isOver = false
  #sentAt = Number.NEGATIVE_INFINITY
  #unsent: string | null = null
  #cancel: Cancel | null = null

  constructor(message: RunMessage, send: (message: FromChild) => void) {
    this.#message = message
    this.#send = send
    this.task = new Task(message.task)
    this.remote = new RemoteSteps(message.run, message.maxPayload, send)
    this.workerId = message.workerId
    this.log = {
      debug: (text, facts) => this.#log('debug', text, facts),
      info: (text, facts) => this.#log('info', text, facts),
      warn: (text, facts) => this.#log('warn', text, facts),
      error: (text, facts) => this.#log('error', text, facts),
    }
  }

  get run(): number {
    return this.#message.run
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  get fence(): number {
    return this.task.attempts
  }

  get attempt(): number {
    return this.task.attempts
  }

  get client(): Client {
    throw new HoldfastError(
      'NOT_IN_ISOLATION',
      'ctx.client is not available in an isolated handler: connect in its module',
    )
  }

  progress(value: unknown): void {
    const { text } = encodePayload(value, 'progress', this.#message.maxPayload)
    if (this.#isOver) return
    this.#unsent = text
    const wait = this.#sentAt + PROGRESS_EVERY - systemClock.mono()
    // Timers do not fire while a handler does not yield: the next call sends.
    if (wait <= 0) this.#sendProgress()
    else this.#cancel ??= systemClock.after(wait, () => this.#sendProgress())
  }

  reschedule(delay: Duration, options: RescheduleOptions = {}): RescheduleError {
    return new RescheduleError(delay, options)
  }

  step<Value>(
    name: string,
    run: (step: StepContext) => Value | Promise<Value>,
    options?: InTransaction,
  ): Promise<Value> {
    if (options !== undefined) throw noTransaction('step')
    return this.remote.step(name, run) as Promise<Value>
  }

  complete(): Promise<void> {
    throw noTransaction('complete')
  }

  sleep(name: string, duration: Duration): Promise<void> {
    return this.remote.sleep(name, duration)
  }

  waitFor<Value = unknown>(name: string, options?: WaitForOptions<Value>): Promise<Value> {
    return this.remote.waitFor(name, options) as Promise<Value>
  }

  steps(): Promise<readonly ShownStep[]> {
    return this.remote.list()
  }

  abort(reason: AbortReason): void {
    this.#controller.abort(new AbortedError(reason))
  }

  close(): void {
    this.#isOver = true
    this.#cancel?.()
  }

  #sendProgress(): void {
    this.#cancel?.()
    this.#cancel = null
    if (this.#unsent === null || this.#isOver) return
    this.#send({ kind: 'progress', run: this.run, text: this.#unsent })
    this.#unsent = null
    this.#sentAt = systemClock.mono()
  }

  #log(level: LogLevel, message: string, facts: Record<string, unknown> = {}): void {
    this.#send({ kind: 'log', run: this.run, level, message: String(message), facts: factsText(facts) })
  }
}

/** Facts that JSON cannot hold must not fail the run. */
const factsText = (facts: Record<string, unknown>): string => {
  try {
    return JSON.stringify(facts)
  } catch {
    return JSON.stringify(Object.fromEntries(Object.entries(facts).map(([name, value]) => [name, String(value)])))
  }
}

const noTransaction = (call: string): HoldfastError =>
  new HoldfastError(
    'NOT_IN_ISOLATION',
    `ctx.${call} with tx is not available in an isolated handler: its transaction cannot cross to the worker`,
  )
