/** Runs the functions of steps, and refuses to park inside one: a park waits until all steps have ended, and this one waits for the park. */
import { AsyncLocalStorage } from 'node:async_hooks'
import { HoldfastError } from '../../../core/errors.ts'
import { isThenable } from '../../../core/values/thenable.ts'

interface RunningStep {
  readonly name: string
  /** The steps of the run that it belongs to. */
  readonly run: object
  hasEnded: boolean
}

const running = new AsyncLocalStorage<RunningStep>()

/** Returns the result of `fn`, as a promise only if `fn` returns one: a transaction on SQLite must stay synchronous. */
export const runInStep = (run: object, name: string, fn: () => unknown): unknown => {
  const step: RunningStep = { name, run, hasEnded: false }
  const ended = (): void => {
    step.hasEnded = true
  }
  const value = running.run(step, fn)
  if (isThenable(value)) return Promise.resolve(value).finally(ended)
  ended()
  return value
}

/** `name` is the sleep or wait that was requested. */
export const mustBeOutside = (run: object, name: string): void => {
  const step = running.getStore()
  if (step === undefined || step.run !== run || step.hasEnded) return
  throw new HoldfastError(
    'STEP_INVALID',
    `step '${name}' sleeps or waits inside the function of step '${step.name}', which would never end: call it outside of that function`,
    { step: name, inside: step.name },
  )
}

export const mustBeFunction = (name: string, fn: unknown): void => {
  if (typeof fn !== 'function')
    throw new HoldfastError('INVALID_OPTION', `step '${name}' needs a function: ctx.step(name, () => value)`, {
      step: name,
    })
}
