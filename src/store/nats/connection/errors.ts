/** Maps errors of NATS and its client to Holdfast's codes. */
import { type Code, HoldfastError } from '../../../core/errors.ts'

interface ApiError extends Error {
  /** JetStream's error number. */
  readonly code?: number
  /** An HTTP status. */
  readonly status?: number
}

/** The key has been written since. Newer servers use the second number. */
const WRONG_SEQUENCE: readonly number[] = [10_071, 10_164]
const NOT_FOUND: readonly number[] = [10_037]
const STREAM_NOT_FOUND = 10_059

/** All error numbers of JetStream are larger. */
const FIRST_API_CODE = 10_000
/**
 * The server or cluster is starting, electing a leader, or still creating a stream for a request that timed out (10049). A
 * retry may succeed.
 */
const NOT_YET: readonly number[] = [10_008, 10_009, 10_014, 10_049, STREAM_NOT_FOUND, 10_118, 10_119]
const UNAVAILABLE = 503

const CODES: readonly (readonly [codes: readonly number[], code: Code])[] = [
  // The account, the server or the stream has no space left.
  [[10_002, 10_023, 10_028, 10_047, 10_077, 10_122], 'STORE_FULL'],
  [[10_054], 'PAYLOAD_TOO_LARGE'],
  // More replicas than servers: the first number comes from a single server, the second from a cluster.
  [[10_074, 10_005], 'INVALID_OPTION'],
  // No JetStream on this server, or for this account.
  [[10_076, 10_039], 'INVALID_OPTION'],
]

const isOne = (error: unknown, codes: readonly number[]): boolean =>
  error instanceof Error && codes.includes((error as ApiError).code ?? 0)

/** Another process wrote the key first. */
export const isWrongSequence = (error: unknown): boolean => isOne(error, WRONG_SEQUENCE)

export const isNotFound = (error: unknown): boolean => isOne(error, NOT_FOUND)

export const isStreamNotFound = (error: unknown): boolean => isOne(error, [STREAM_NOT_FOUND])

/**
 * No responder on JetStream's subjects: the account has no JetStream. This also happens for moments while a server or a leaf
 * node comes back, so it is final only when a store is opened.
 */
export const withoutJetStream = (error: unknown, address: string): HoldfastError | null =>
  error instanceof Error && error.name === 'JetStreamNotEnabled'
    ? new HoldfastError(
        'INVALID_OPTION',
        `${address}: JetStream is not enabled for this account: enable it there, or use a user of the account that has the store`,
        { field: 'url' },
        error,
      )
    : null

/** An unknown error leaves open whether the call took effect. */
export const asHoldfastError = (error: unknown, address: string): HoldfastError => {
  if (error instanceof HoldfastError) return error
  const { name, message } = error instanceof Error ? error : { name: '', message: String(error) }
  const code = codeOf(error, name, message)
  const details = code === 'INVALID_OPTION' ? { field: 'url' } : {}
  return new HoldfastError(code, `${address}: ${message || name}${adviceOn(error, code)}`, details, error)
}

const codeOf = (error: unknown, name: string, message: string): Code => {
  const known = CODES.find(([codes]) => isOne(error, codes))
  if (known !== undefined) return known[1]
  if (isPermissionViolation(error)) return 'STORE_READ_ONLY'
  // A server that is too busy to check a password reports it under the same name.
  if (isRefusedLogin(error) && !/timeout/i.test(message)) return 'INVALID_OPTION'
  if (name === 'InvalidSubjectError' || name === 'InvalidArgumentError' || name === 'TypeError') return 'INTERNAL'
  return isRefusal(error) ? 'STORE_REFUSED' : 'STORE_UNAVAILABLE'
}

/** The server answered and refused: contact is not lost, and nothing was written. */
export const isRefusal = (error: unknown): boolean => {
  if (isPermissionViolation(error)) return true
  const { code, status } = error as ApiError
  return typeof code === 'number' && code > FIRST_API_CODE && status !== UNAVAILABLE && !NOT_YET.includes(code)
}

const REFUSED_LOGINS = ['AuthorizationError', 'UserAuthenticationExpiredError']

/** The server does not accept this user, or no longer does. */
export const isRefusedLogin = (error: unknown): boolean => error instanceof Error && REFUSED_LOGINS.includes(error.name)

/** Also if the client wrapped it in an error of its own. */
const isPermissionViolation = (error: unknown): boolean =>
  error instanceof Error && (error.name === 'PermissionViolationError' || isPermissionViolation(error.cause))

const adviceOn = (error: unknown, code: Code): string => {
  if (code === 'STORE_READ_ONLY') return ': this user needs the permission; docs/stores/nats.md has all of them'
  if (isRefusedLogin(error) && code === 'INVALID_OPTION')
    return ': the server does not accept this user, password, token or credentials file'
  return isOne(error, [10_074, 10_005]) ? ': ask for no more replicas than there are servers with JetStream' : ''
}
