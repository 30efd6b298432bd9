/** The errors that durable waits throw into a handler. */

import type { Instant } from '../task.ts'
import { isInstance, readText } from '../values/error-facts.ts'

/**
 * The task is parked: this run is over, and the handler starts from the top when the wait ends. Do not catch it: the result of a handler that
 * continues is ignored.
 */
export class Parked extends Error {
  override readonly name: string = 'Parked'
  readonly step: string

  constructor(step: string) {
    super(`parked in step '${step}': the handler starts again from the top when it is time`)
    this.step = step
  }
}

/** Works across copies of this package, where instanceof fails. */
export const isParked = (thrown: unknown): boolean =>
  isInstance(thrown, Parked) || (isInstance(thrown, Error) && readText(thrown, 'name') === 'Parked')

/** No signal came before the timeout of `ctx.waitFor`. Every later run gets the same error. */
export class SignalTimeout extends Error {
  override readonly name: string = 'SignalTimeout'
  readonly step: string

  constructor(step: string) {
    super(`no signal came for step '${step}' before its timeout`)
    this.step = step
  }
}

/** The schema of `ctx.waitFor` refused the value of the signal. The signal counts as taken, and every later run gets the same error. */
export class SignalInvalid extends Error {
  override readonly name: string = 'SignalInvalid'
  readonly step: string
  readonly signal: { readonly id: string; readonly name: string; readonly at: Instant }

  constructor(step: string, signal: SignalInvalid['signal'], why: string) {
    super(`the signal '${signal.name}' for step '${step}' was refused: ${why}`)
    this.step = step
    this.signal = signal
  }
}
