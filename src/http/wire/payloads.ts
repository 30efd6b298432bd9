/** Values in a body: JSON directly, bytes as base64 text. */
import { HoldfastError } from '../../index.ts'
import { type Schema, text } from './schemas.ts'

export const encoding: Schema = {
  type: 'string',
  enum: ['json', 'base64'],
  description: "'base64': the value is text that encodes bytes",
}

export const payloadOf = (value: unknown, how: unknown, field: string): unknown => {
  if (how !== 'base64') return value
  if (typeof value === 'string' && /^[A-Za-z0-9+/]*={0,2}$/.test(value) && value.length % 4 === 0)
    return new Uint8Array(Buffer.from(value, 'base64'))
  throw new HoldfastError('INVALID_TASK', `${field} is not base64`, { field })
}

export const reason: Schema = text('kept in the history')
