/** Answers the calls of a child about the durable steps of its run. */
import { encodePayload, type Payload } from '../../../core/values/payload.ts'
import type { Attempt } from '../attempt.ts'
import { errorText } from './errors.ts'
import type { CallResult, StepCall, ToChild } from './protocol.ts'

export class StepCalls {
  readonly #attempt: Attempt
  readonly #send: (message: ToChild) => void
  /** By the number of the call: what waits for a verdict of the child's schema. */
  readonly #verdicts = new Map<number, (why: string | null) => void>()

  constructor(attempt: Attempt, send: (message: ToChild) => void) {
    this.#attempt = attempt
    this.#send = send
  }

  async answer(run: number, n: number, ask: StepCall): Promise<void> {
    try {
      this.#send({ kind: 'answer', run, n, value: await this.#call(run, n, ask) })
    } catch (error) {
      this.#send({ kind: 'refused', run, n, error: errorText(error) })
    }
  }

  verdict(n: number, why: string | null): void {
    this.#verdicts.get(n)?.(why)
    this.#verdicts.delete(n)
  }

  async #call(run: number, n: number, ask: StepCall): Promise<CallResult> {
    const { durable } = this.#attempt
    switch (ask.call) {
      case 'begin': {
        const begun = await durable.begin(ask.name)
        return 'key' in begun ? { kind: 'key', key: begun.key } : { kind: 'value', value: crossing(begun.value) }
      }
      case 'record':
        await durable.record(ask.name, ask.value)
        return NOTHING
      case 'leave':
        durable.leave()
        return NOTHING
      case 'sleep':
        await durable.sleep(ask.name, { milliseconds: ask.length })
        return NOTHING
      case 'wait': {
        const check = (value: unknown): Promise<string | null> =>
          new Promise((done) => {
            this.#verdicts.set(n, done)
            this.#send({ kind: 'check', run, n, value: crossing(value) })
          })
        return {
          kind: 'value',
          value: crossing(await durable.takeSignal(ask.name, ask.signal, ask.length, ask.hasSchema ? check : null)),
        }
      }
      case 'list':
        return { kind: 'steps', steps: await durable.list() }
    }
  }
}

const NOTHING: CallResult = { kind: 'value', value: null }

/** A value that was stored is within the limits already. */
const crossing = (value: unknown): Payload | null =>
  value === undefined ? null : encodePayload(value, 'value', Number.POSITIVE_INFINITY)
