/** Encodes what a handler returned. Its effect has already happened, so no output makes the task fail. */
import { HoldfastError, isHoldfastError } from '../errors.ts'
import type { Encoding } from '../task.ts'
import { cleanText, encodePayload, type Payload } from './payload.ts'

export interface Output {
  /** null if it could not be stored; `error` says why. */
  readonly text: string | null
  readonly encoding: Encoding
  readonly error?: string
  /** What JSON.stringify omitted or changed, for a warning to the author of the handler. */
  readonly changed?: string
}

/** Returned in place of an output that was encoded elsewhere: in the child that ran the handler. */
export class EncodedOutput {
  readonly output: Output

  constructor(output: Output) {
    this.output = output
  }
}

const MAX_REASON = 1_024

/** Encodes like JSON.stringify: undefined is dropped, a Date becomes its ISO text. Throws if the value cannot be stored. */
export const takeOutput = (returned: unknown, limit: number): Payload & Pick<Output, 'changed'> => {
  try {
    return encodePayload(returned === undefined ? null : returned, 'output', limit, 'OUTPUT_INVALID')
  } catch (strict) {
    if (!isHoldfastError(strict, 'OUTPUT_INVALID')) throw strict
    return { ...encodeLoosely(returned, limit, strict), changed: strict.message }
  }
}

/** Encodes twice: the result of the first must itself be within the limits of a payload. */
const encodeLoosely = (returned: unknown, limit: number, strict: HoldfastError): Payload => {
  let text: string | undefined
  try {
    text = JSON.stringify(returned)
  } catch {
    // Reported below: the strict reason names the path, which JSON.stringify does not.
  }
  if (text === undefined) throw strict
  return encodePayload(JSON.parse(text), 'output', limit, 'OUTPUT_INVALID')
}

/** Never throws: an output that cannot be stored is omitted, with the reason in `error`. */
export const encodeOutput = (returned: unknown, limit: number): Output => {
  try {
    return takeOutput(returned, limit)
  } catch (error) {
    return { text: null, encoding: 'json', error: reason(error instanceof Error ? error.message : String(error)) }
  }
}

/** The value is kept, with the schema's message in `error`. */
export const withComplaint = (output: Output, complaint: unknown): Output => ({
  ...output,
  error: output.error ?? reason(complaint instanceof HoldfastError ? complaint.message : String(complaint)),
})

const reason = (text: string): string => cleanText(text.slice(0, MAX_REASON))
