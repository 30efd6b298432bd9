/** Translates errors of PostgreSQL and its driver to Holdfast's codes. */
import { type Code, HoldfastError } from '../../core/errors.ts'

interface DatabaseError extends Error {
  /** A SQLSTATE of five characters, or the name of a system error. */
  readonly code?: string
}

/** By SQLSTATE or SQLSTATE class. */
const STATES: readonly (readonly [prefix: string, code: Code])[] = [
  ['53100', 'STORE_FULL'],
  ['25006', 'STORE_READ_ONLY'],
  ['42501', 'STORE_READ_ONLY'],
  ['42P01', 'STORE_NOT_FOUND'],
  ['42883', 'STORE_NOT_FOUND'],
  ['3F000', 'STORE_NOT_FOUND'],
  ['3D000', 'STORE_NOT_FOUND'],
  ['XX001', 'STORE_CORRUPT'],
  ['XX002', 'STORE_CORRUPT'],
  // A connection shared with other clients has lost our statements, or has theirs.
  ['26000', 'INVALID_OPTION'],
  ['42P05', 'INVALID_OPTION'],
  ['40', 'STORE_CONFLICT'],
  ['55P03', 'STORE_BUSY'],
  ['08', 'STORE_UNAVAILABLE'],
  ['28', 'STORE_UNAVAILABLE'],
  ['53', 'STORE_UNAVAILABLE'],
  ['57', 'STORE_UNAVAILABLE'],
  ['58', 'STORE_UNAVAILABLE'],
]

/** Connection losses for which the driver has no code. */
const LOST = /terminated|timeout|not queryable|ended|closed|ECONN|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENOTFOUND|EAI_AGAIN/i

/** Reasons why there was no connection. Nothing was sent, so nothing can have been stored. */
interface Unconnected {
  readonly reason:
    | 'wrong-password'
    | 'not-allowed'
    | 'unknown-host'
    | 'refused'
    | 'tls'
    | 'no-database'
    | 'not-ready'
    | 'too-many-connections'
  readonly matches: RegExp
  readonly advice: string
}

/** Matched against the code and the message; the first match applies. */
const UNCONNECTED: readonly Unconnected[] = [
  {
    reason: 'wrong-password',
    matches: /^28P01|client password must be a string/,
    advice: 'Check user and password in the address (special characters must be percent-encoded), or PGPASSWORD.',
  },
  {
    reason: 'tls',
    matches: /does not support SSL/i,
    advice: 'This server has no TLS: remove sslmode from the address, or write sslmode=disable.',
  },
  {
    reason: 'tls',
    // A rejection by pg_hba.conf mentions encryption too, but is not about it.
    matches: /^(?!.*pg_hba\.conf rejects).*(SSL|TLS|certificate|self.signed|no encryption)/i,
    advice: 'Add ?sslmode=require to the address; name the certificate of the server in a pool of your own.',
  },
  {
    reason: 'not-allowed',
    matches: /^28/,
    advice: 'Check that this role exists, and that pg_hba.conf lets it in from here.',
  },
  {
    reason: 'unknown-host',
    matches: /ENOTFOUND|EAI_AGAIN/,
    advice: 'No host has this name: check the address, and the DNS of this machine.',
  },
  {
    reason: 'refused',
    matches: /ECONNREFUSED|ENOENT/,
    advice: 'Nothing listens there: is PostgreSQL running, and are host and port right?',
  },
  {
    reason: 'no-database',
    matches: /^3D000/,
    advice: 'Make the database first (createdb), then run `holdfast init URL` or connect with create: true.',
  },
  {
    reason: 'not-ready',
    matches: /^57P03/,
    advice: 'The server is starting or shutting down: try again when it is up.',
  },
  {
    reason: 'too-many-connections',
    matches: /^53300/,
    advice: 'Raise max_connections of the server, give processes smaller pools (?max=2), or put PgBouncer between.',
  },
]

const unconnected = (code: string, message: string): Unconnected | null =>
  UNCONNECTED.find(({ matches }) => matches.test(code) || matches.test(message)) ?? null

/** A host with several addresses fails once for each, in an AggregateError whose own message is empty. */
const messageOf = (error: Error): string => {
  if (error.message !== '' || !(error instanceof AggregateError)) return error.message
  return error.errors.map((one: unknown) => (one instanceof Error ? one.message : String(one))).join('; ')
}

const SQLSTATE = /^[0-9A-Z]{5}$/
/** Codes of the operating system, not of the server. */
const SYSTEM = /^E[A-Z]{3,}/

const factsOf = (code: string | undefined): Record<string, string> =>
  code === undefined ? {} : SYSTEM.test(code) || !SQLSTATE.test(code) ? { systemCode: code } : { sqlState: code }

export const asHoldfastError = (error: unknown, address: string): HoldfastError => {
  if (error instanceof HoldfastError) return error
  if ((error as DatabaseError | null)?.code === 'ERR_INVALID_URL')
    return new HoldfastError(
      'INVALID_OPTION',
      'the address of PostgreSQL cannot be read: in user and password, special characters must be percent-encoded (# is %23, / is %2F, ? is %3F)',
      { field: 'url' },
      error,
    )
  if ((error as DatabaseError | null)?.code === '42P07')
    return new HoldfastError(
      'INVALID_OPTION',
      `${address}: ${(error as Error).message}: this schema has tables of others; name another one for Holdfast, as in ?schema=holdfast`,
      { field: 'schema', sqlState: '42P07' },
      error,
    )
  const { message, code } =
    error instanceof Error
      ? { message: messageOf(error), code: (error as DatabaseError).code }
      : { message: String(error), code: undefined }
  const none = unconnected(code ?? '', message)
  if (none !== null) {
    const shown = code === undefined || message.includes(code) ? message : `${message} (${code})`
    return new HoldfastError(
      none.reason === 'no-database' ? 'STORE_NOT_FOUND' : 'STORE_UNAVAILABLE',
      `${address}: ${shown}`,
      { ...factsOf(code), reason: none.reason, advice: none.advice },
      error,
    )
  }
  const known = codeOf(code, message)
  const advice =
    known === 'INVALID_OPTION'
      ? ': behind PgBouncer in transaction mode connect with prepare: false and listen: false (in an address: ?prepare=false&listen=false)'
      : ''
  return new HoldfastError(
    known,
    `${address}: ${message}${code === undefined ? '' : ` (${code})`}${advice}`,
    factsOf(code),
    error,
  )
}

/** PgBouncer refuses settings that would stay on a connection. */
const NOT_PASSED_ON = /unsupported startup parameter/

const codeOf = (code: string | undefined, message: string): Code => {
  if (NOT_PASSED_ON.test(message)) return 'INVALID_OPTION'
  const known = code === undefined ? undefined : STATES.find(([prefix]) => code.startsWith(prefix))
  if (known !== undefined) return known[1]
  if (/after calling end/.test(message)) return 'STORE_CLOSED'
  return LOST.test(`${code ?? ''} ${message}`) ? 'STORE_UNAVAILABLE' : 'INTERNAL'
}

/** A deadlock or a serialization failure: PostgreSQL rolled the transaction back, so it can be repeated. */
export const mayRepeat = (error: unknown): boolean => {
  const code = (error as DatabaseError | null)?.code
  return code === '40P01' || code === '40001'
}
