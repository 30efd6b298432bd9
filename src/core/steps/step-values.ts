/** What a step may record, and how a name that was used for something else is refused. */
import { HoldfastError } from '../errors.ts'
import { takeOutput } from '../values/output.ts'
import type { Payload } from '../values/payload.ts'
import type { StepState } from './journal.ts'

/** null: undefined. A value that JSON cannot hold at all fails the task for good. */
export const stepPayload = (name: string, value: unknown, limit: number): Payload | null => {
  if (value === undefined) return null
  try {
    const { text, encoding } = takeOutput(value, limit)
    return { text, encoding }
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    throw new HoldfastError(
      'STEP_INVALID',
      `the result of step '${name}' cannot be stored: ${why}`,
      { step: name },
      error,
    )
  }
}

export const mismatch = (name: string, state: StepState | undefined): HoldfastError =>
  new HoldfastError(
    'STEP_INVALID',
    `step '${name}' is recorded as ${WORDS[state?.kind ?? 'wait']}: give a step of another kind another name`,
    { step: name },
  )

const WORDS: Readonly<Record<StepState['kind'], string>> = {
  step: 'a step with a result',
  sleep: 'a sleep',
  wait: 'a wait for a signal',
  taken: 'a wait for a signal',
  'timed-out': 'a wait for a signal',
}
