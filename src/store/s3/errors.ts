/** What S3 and its client say, as Holdfast's codes. By status and code, never by the text of a message. */
import { type Code, HoldfastError } from '../../core/errors.ts'

interface ServiceError extends Error {
  readonly name: string
  readonly Code?: string
  readonly $metadata?: { readonly httpStatusCode?: number }
}

/** Refusals that another try may not meet: credentials are refreshed, clocks set right. */
const PASSING: ReadonlySet<string> = new Set([
  'ExpiredToken',
  'ExpiredTokenException',
  'RequestTimeTooSkewed',
  'RequestExpired',
  'TokenRefreshRequired',
  'RequestTimeout',
  'OperationAborted',
])

const CODES: Readonly<Record<string, Code>> = {
  NoSuchBucket: 'STORE_NOT_FOUND',
  QuotaExceeded: 'STORE_FULL',
  InvalidAccessKeyId: 'INVALID_OPTION',
  SignatureDoesNotMatch: 'INVALID_OPTION',
  InvalidBucketName: 'INVALID_OPTION',
  PermanentRedirect: 'INVALID_OPTION',
  AuthorizationHeaderMalformed: 'INVALID_OPTION',
  CredentialsProviderError: 'INVALID_OPTION',
}

export const statusOf = (error: unknown): number | undefined => (error as ServiceError).$metadata?.httpStatusCode

export const nameOf = (error: unknown): string => (error as ServiceError).Code ?? (error as Error).name

export const asHoldfastError = (error: unknown, doing: string, address: string): HoldfastError => {
  if (error instanceof HoldfastError) return error
  const [status, name] = [statusOf(error), nameOf(error)]
  const message = error instanceof Error ? error.message : String(error)
  const code = codeOf(status, name)
  const advice = code === 'STORE_READ_ONLY' ? `: this needs the right to ${doing}` : ''
  const said = [name, status].filter((part) => part !== undefined).join(' ')
  const details = { status, name, ...(status === 409 ? { isConflict: true } : null) }
  return new HoldfastError(code, `${address}: ${message} (${said})${advice}`, details, error)
}

const codeOf = (status: number | undefined, name: string): Code => {
  if (PASSING.has(name)) return 'STORE_UNAVAILABLE'
  const known = CODES[name]
  if (known !== undefined) return known
  // No answer at all, or one that says that it is the server's own fault.
  if (status === undefined || status === 200 || status === 409 || status === 429 || status >= 500)
    return 'STORE_UNAVAILABLE'
  return status === 403 ? 'STORE_READ_ONLY' : status === 401 ? 'INVALID_OPTION' : 'INTERNAL'
}
