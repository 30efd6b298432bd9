/** The values that handlers pass to steps and get from them, in the worker and in its children. */
import type { StandardSchemaV1 } from '@standard-schema/spec'
import { isHoldfastError } from '../../../core/errors.ts'
import type { StepResult, Wait } from '../../../core/steps/steps.ts'
import type { JournalEntry } from '../../../core/task.ts'
import { checkSchema } from '../../definition.ts'

/** Checks the value of a signal. Returns why it is refused; null: it is not. */
export type SignalCheck = (value: unknown) => Promise<string | null>

export interface OpenWait extends Wait {
  readonly check: SignalCheck | null
  /** By the id of the signal. */
  readonly verdicts: Map<string, string | null>
  resolve(): void
  reject(error: unknown): void
}

export interface Unrecorded extends StepResult {
  resolve(): void
  reject(error: unknown): void
}

/** A result is recognised as a run's own by its name and the lease token. */
export const isResultOf = (journal: readonly JournalEntry[], step: string, token: string): boolean =>
  journal.some(({ kind, name, op }) => kind === 'step' && name === step && op === token)

/** A handler that ends without awaiting it must not end the process with an unhandled rejection. */
export const mayBeLeft = <T>(wait: Promise<T>): Promise<T> => {
  wait.catch(() => {})
  return wait
}

/** As `mayBeLeft`, but only of the error that the run is over: what the function of the step throws is not hidden. */
export const mayOutliveRun = (step: Promise<unknown>): Promise<unknown> => {
  const seen = new Promise<unknown>((resolve, reject) => {
    step.then(resolve, (error: unknown) => {
      if (isHoldfastError(error, 'STALE_LEASE')) seen.catch(() => {})
      reject(error)
    })
  })
  return seen
}

export const schemaCheck =
  (schema: StandardSchemaV1): SignalCheck =>
  async (value) => {
    try {
      await checkSchema(schema, value, 'signal', 'SIGNAL_INVALID')
      return null
    } catch (error) {
      if (isHoldfastError(error, 'SIGNAL_INVALID')) return error.message
      throw error
    }
  }
