/** Values as text in a statement, for the protocol that takes several statements in one message, but no values. */
import { HoldfastError } from '../../core/errors.ts'
import type { Value } from './connection.ts'

/** Escaped in the way that no setting of the server changes. */
const quoted = (text: string): string => {
  // It would end the message in the middle of the statement.
  if (text.includes('\0')) throw new HoldfastError('INVALID_OPTION', 'PostgreSQL keeps no NUL character in a name')
  return ` E'${text.replaceAll('\\', '\\\\').replaceAll("'", "''")}'`
}

const item = (value: string | number | boolean | null): string =>
  typeof value === 'string' ? `"${value.replace(/["\\]/g, '\\$&')}"` : String(value)

const literal = (value: Value): string => {
  if (typeof value === 'string') return quoted(value)
  if (value === null || typeof value !== 'object') return String(value)
  return quoted(`{${value.map(item).join(',')}}`)
}

/** `$1` becomes the first value, and so on. The text has no other dollar signs. */
export const inlined = (text: string, values: readonly Value[]): string =>
  text.replace(/\$(\d+)/g, (_, n: string) => literal(values[Number(n) - 1] ?? null))
