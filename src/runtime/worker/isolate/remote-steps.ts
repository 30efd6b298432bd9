/** Durable steps inside a child: the worker keeps them, and answers calls by message. */
import { HoldfastError } from '../../../core/errors.ts'
import { checkStepName, type ShownStep } from '../../../core/steps/journal.ts'
import { stepPayload } from '../../../core/steps/step-values.ts'
import { type Duration, parseDuration } from '../../../core/values/durations.ts'
import { checkOptionNames } from '../../../core/values/option-names.ts'
import { decodePayload, type Payload } from '../../../core/values/payload.ts'
import { asSchema, checkSchema } from '../../definition.ts'
import type { StepContext, WaitForOptions } from '../../handler.ts'
import { mustBeFunction, mustBeOutside, runInStep } from '../steps/inside-step.ts'
import { mayBeLeft, type SignalCheck, schemaCheck } from '../steps/values.ts'
import { errorOf } from './errors.ts'
import type { CallResult, FromChild, StepCall, ToChild } from './protocol.ts'

interface Pending {
  resolve(value: CallResult): void
  reject(error: unknown): void
}

export class RemoteSteps {
  readonly #run: number
  readonly #maxPayload: number
  readonly #send: (message: FromChild) => void
  readonly #pending = new Map<number, Pending>()
  readonly #checks = new Map<number, SignalCheck>()
  #calls = 0

  constructor(run: number, maxPayload: number, send: (message: FromChild) => void) {
    this.#run = run
    this.#maxPayload = maxPayload
    this.#send = send
  }

  async step(name: string, run: (step: StepContext) => unknown): Promise<unknown> {
    mustBeFunction(name, run)
    const begun = await this.#call({ call: 'begin', name: checkStepName(name) })
    if (begun.kind !== 'key') return answeredValue(begun)
    try {
      const result = await runInStep(this, name, () => run({ key: begun.key }))
      const value = stepPayload(name, result, this.#maxPayload)
      await this.#call({ call: 'record', name, value })
      return decoded(value)
    } finally {
      void this.#call({ call: 'leave' }).catch(() => {})
    }
  }

  sleep(name: string, duration: Duration): Promise<void> {
    return mayBeLeft(this.#sleep(name, duration))
  }

  async #sleep(name: string, duration: Duration): Promise<void> {
    mustBeOutside(this, name)
    await this.#call({ call: 'sleep', name: checkStepName(name), length: parseDuration(duration, 'duration') })
  }

  waitFor(name: string, options: WaitForOptions = {}): Promise<unknown> {
    return mayBeLeft(this.#waitFor(name, options))
  }

  async #waitFor(name: string, options: WaitForOptions): Promise<unknown> {
    mustBeOutside(this, name)
    checkOptionNames(options, ['signal', 'timeout', 'schema'], 'waitFor')
    const { timeout } = options
    const schema = asSchema(options.schema, 'schema')
    const signal = checkStepName(options.signal ?? name, 'signal')
    const length = timeout === undefined ? null : parseDuration(timeout, 'timeout')
    const check = schema === null ? null : schemaCheck(schema)
    const taken = answeredValue(
      await this.#call({ call: 'wait', name: checkStepName(name), signal, length, hasSchema: schema !== null }, check),
    )
    if (schema === null) return taken
    return (await checkSchema(schema, taken, 'signal', 'SIGNAL_INVALID')).value
  }

  async list(): Promise<readonly ShownStep[]> {
    const found = await this.#call({ call: 'list' })
    return found.kind === 'steps' ? found.steps : []
  }

  /** What the worker says about a call of this run. */
  heard(message: Extract<ToChild, { readonly kind: 'answer' | 'refused' | 'check' }>): void {
    const { n } = message
    if (message.kind === 'check') {
      void this.#check(n, message.value)
      return
    }
    const pending = this.#pending.get(n)
    this.#pending.delete(n)
    this.#checks.delete(n)
    if (message.kind === 'answer') pending?.resolve(message.value)
    else pending?.reject(errorOf(message.error))
  }

  async #check(n: number, value: Payload | null): Promise<void> {
    const why = await this.#checks
      .get(n)?.(decoded(value))
      .catch((error: unknown) => String(error))
    this.#send({ kind: 'verdict', run: this.#run, n, why: why ?? null })
  }

  #call(ask: StepCall, check: SignalCheck | null = null): Promise<CallResult> {
    const n = ++this.#calls
    if (check !== null) this.#checks.set(n, check)
    return new Promise((resolve, reject) => {
      this.#pending.set(n, { resolve, reject })
      this.#send({ kind: 'call', run: this.#run, n, ask })
    })
  }
}

const decoded = (payload: Payload | null): unknown =>
  payload === null ? undefined : decodePayload(payload.text, payload.encoding)

const answeredValue = (result: CallResult): unknown => {
  if (result.kind === 'value') return decoded(result.value)
  throw new HoldfastError('INTERNAL', `a step was answered with a ${result.kind}`)
}
