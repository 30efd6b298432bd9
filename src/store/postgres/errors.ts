/** What PostgreSQL and its driver say, as Holdfast's codes. */
import { type Code, HoldfastError } from '../../core/errors.ts'

interface DatabaseError extends Error {
  /** SQLSTATE of five characters, or a system error's name. */
  readonly code?: string
}

/** By SQLSTATE, whole or by class. */
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
  // A connection that others use too has forgotten our statements, or has theirs.
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

/** The driver has no codes for these. */
const LOST = /terminated|timeout|not queryable|ended|closed|ECONN|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENOTFOUND|EAI_AGAIN/i

export const asHoldfastError = (error: unknown, address: string): HoldfastError => {
  if (error instanceof HoldfastError) return error
  const { message, code } =
    error instanceof Error ? (error as DatabaseError) : { message: String(error), code: undefined }
  const known = codeOf(code, message)
  const advice =
    known === 'INVALID_OPTION'
      ? ': behind PgBouncer in transaction mode connect with prepare: false and listen: false'
      : ''
  return new HoldfastError(
    known,
    `${address}: ${message}${code === undefined ? '' : ` (${code})`}${advice}`,
    code === undefined ? {} : { sqlState: code },
    error,
  )
}

/** PgBouncer does not pass on what would stay on a connection. */
const NOT_PASSED_ON = /unsupported startup parameter/

const codeOf = (code: string | undefined, message: string): Code => {
  if (NOT_PASSED_ON.test(message)) return 'INVALID_OPTION'
  const known = code === undefined ? undefined : STATES.find(([prefix]) => code.startsWith(prefix))
  if (known !== undefined) return known[1]
  if (/after calling end/.test(message)) return 'STORE_CLOSED'
  return LOST.test(`${code ?? ''} ${message}`) ? 'STORE_UNAVAILABLE' : 'INTERNAL'
}

/** Deadlock or serialisation failure: PostgreSQL took it back as a whole, so it may simply be done again. */
export const mayRepeat = (error: unknown): boolean => {
  const code = (error as DatabaseError | null)?.code
  return code === '40P01' || code === '40001'
}
