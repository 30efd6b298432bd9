/** What NATS and its client say, as Holdfast's codes. */
import { type Code, HoldfastError } from '../../core/errors.ts'

interface ApiError extends Error {
  /** JetStream's own number for what went wrong. */
  readonly code?: number
}

/** The key has been written since: by its last sequence, also as newer servers say it. */
const WRONG_SEQUENCE: readonly number[] = [10_071, 10_164]
const NOT_FOUND: readonly number[] = [10_037]
const STREAM_NOT_FOUND = 10_059

const CODES: readonly (readonly [codes: readonly number[], code: Code])[] = [
  // No space: of the account, of the server, of the stream.
  [[10_002, 10_023, 10_028, 10_047, 10_077, 10_122], 'STORE_FULL'],
  [[10_054], 'PAYLOAD_TOO_LARGE'],
]

const isOne = (error: unknown, codes: readonly number[]): boolean =>
  error instanceof Error && codes.includes((error as ApiError).code ?? 0)

/** Somebody wrote the key first. */
export const isWrongSequence = (error: unknown): boolean => isOne(error, WRONG_SEQUENCE)

export const isNotFound = (error: unknown): boolean => isOne(error, NOT_FOUND)

export const isStreamNotFound = (error: unknown): boolean => isOne(error, [STREAM_NOT_FOUND])

/** Whatever is not known better leaves open whether the call took effect. */
export const asHoldfastError = (error: unknown, address: string): HoldfastError => {
  if (error instanceof HoldfastError) return error
  const { name, message } = error instanceof Error ? error : { name: '', message: String(error) }
  const code = codeOf(error, name)
  return new HoldfastError(code, `${address}: ${message || name}`, {}, error)
}

const codeOf = (error: unknown, name: string): Code => {
  const known = CODES.find(([codes]) => isOne(error, codes))
  if (known !== undefined) return known[1]
  if (name === 'PermissionViolationError') return 'STORE_READ_ONLY'
  if (name === 'InvalidSubjectError' || name === 'InvalidArgumentError' || name === 'TypeError') return 'INTERNAL'
  return 'STORE_UNAVAILABLE'
}
