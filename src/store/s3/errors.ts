/** Maps errors of S3 and its client to Holdfast's codes, by status and code, never by the text of a message. */
import { type Code, HoldfastError } from '../../core/errors.ts'

interface ServiceError extends Error {
  readonly name: string
  readonly Code?: string
  readonly $metadata?: { readonly httpStatusCode?: number }
}

/** The server no longer accepts the credentials. The SDK may find new ones. */
const CREDENTIALS: Readonly<Record<string, Code>> = {
  ExpiredToken: 'STORE_UNAVAILABLE',
  ExpiredTokenException: 'STORE_UNAVAILABLE',
  TokenRefreshRequired: 'STORE_UNAVAILABLE',
  InvalidToken: 'INVALID_OPTION',
  InvalidAccessKeyId: 'INVALID_OPTION',
  SignatureDoesNotMatch: 'INVALID_OPTION',
}

const CODES: Readonly<Record<string, Code>> = {
  ...CREDENTIALS,
  // A retry may succeed: clocks are corrected, conflicts end.
  RequestTimeTooSkewed: 'STORE_UNAVAILABLE',
  RequestExpired: 'STORE_UNAVAILABLE',
  RequestTimeout: 'STORE_UNAVAILABLE',
  OperationAborted: 'STORE_UNAVAILABLE',
  NoSuchBucket: 'STORE_NOT_FOUND',
  QuotaExceeded: 'STORE_FULL',
  EntityTooLarge: 'PAYLOAD_TOO_LARGE',
  InvalidBucketName: 'INVALID_OPTION',
  PermanentRedirect: 'INVALID_OPTION',
  AuthorizationHeaderMalformed: 'INVALID_OPTION',
  CredentialsProviderError: 'INVALID_OPTION',
  // Moved to an archive by a lifecycle rule.
  InvalidObjectState: 'STORE_REFUSED',
}

export const statusOf = (error: unknown): number | undefined => (error as ServiceError).$metadata?.httpStatusCode

export const nameOf = (error: unknown): string => (error as ServiceError).Code ?? (error as Error).name

/** The server refused the request because of its credentials, and did nothing. */
export const isCredentialsError = (error: unknown): boolean => nameOf(error) in CREDENTIALS

export const asHoldfastError = (error: unknown, right: string, address: string): HoldfastError => {
  if (error instanceof HoldfastError) return error
  const [status, name] = [statusOf(error), nameOf(error)]
  const message = error instanceof Error ? error.message : String(error)
  const code = codeOf(status, name)
  const said = [name, status].filter((part) => part !== undefined).join(' ')
  const details = { status, name, ...detailsOf(status, code, rightIn(message, right)) }
  return new HoldfastError(code, `${address}: ${message} (${said})${adviceOn(error, details)}`, details, error)
}

/** The key of an encrypted bucket needs a permission of its own, which only the message names. */
const rightIn = (message: string, right: string): string => /\bkms:[A-Za-z]+/.exec(message)?.[0] ?? right

const detailsOf = (status: number | undefined, code: Code, right: string): object => ({
  // A key that is written too often (429) says nothing about the server's load, like two writers that meet (409).
  ...(status === 409 || status === 429 ? { isConflict: true } : null),
  ...(code === 'STORE_READ_ONLY' ? { right } : null),
  ...(code === 'INVALID_OPTION' ? { field: 'url' } : null),
})

const adviceOn = (
  error: unknown,
  { status, right }: { readonly status?: unknown; readonly right?: string },
): string => {
  if (right !== undefined) return `: this needs the right to ${right}`
  if (status === NOT_IMPLEMENTED) return ': this server does not implement what Holdfast needs'
  if (isCredentialsError(error))
    return ': the credentials were read again where they came from (environment, profile, role or option), and are still the same'
  return ''
}

const NOT_IMPLEMENTED = 501

const codeOf = (status: number | undefined, name: string): Code => {
  const known = CODES[name]
  if (known !== undefined) return known
  if (status === NOT_IMPLEMENTED) return 'INVALID_OPTION'
  // No reply, or a reply that reports a fault of the server.
  if (status === undefined || status === 200 || status === 409 || status === 429 || status >= 500)
    return 'STORE_UNAVAILABLE'
  // The key that encrypts the bucket is disabled, deleted or not accessible.
  if (name.startsWith('KMS.')) return 'STORE_REFUSED'
  if (status === 403) return 'STORE_READ_ONLY'
  return status === 401 ? 'INVALID_OPTION' : 'STORE_REFUSED'
}
