/** The only place where a payload is validated, serialised and parsed. */
import { type Code, HoldfastError } from '../errors.ts'
import type { Encoding } from '../task.ts'

/** A value as JSON can hold it. */
export type JsonValue = null | boolean | number | string | readonly JsonValue[] | { readonly [key: string]: JsonValue }

export interface Payload {
  readonly text: string
  readonly encoding: Encoding
}

export const MAX_PAYLOAD = 1_048_576
const MAX_NESTING = 256

/** The text of `value`, or an error with the path of what cannot be stored. A `Uint8Array` at the top level is stored as bytes. */
export const encodePayload = (value: unknown, field: string, limit: number, code: Code = 'INVALID_TASK'): Payload => {
  const payload = isBytes(value)
    ? encodeBytes(value)
    : { text: encodeJson(value, field, code), encoding: 'json' as const }
  checkSize(payload, field, limit)
  return payload
}

export const decodePayload = (text: string, encoding: Encoding): unknown =>
  encoding === 'base64' ? new Uint8Array(Buffer.from(text, 'base64')) : JSON.parse(text)

/** isView first: it never throws, even where instanceof does. */
const isBytes = (value: unknown): value is Uint8Array => ArrayBuffer.isView(value) && value instanceof Uint8Array

const encodeBytes = (bytes: Uint8Array): Payload => ({
  text: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64'),
  encoding: 'base64',
})

const encodeJson = (value: unknown, field: string, code: Code): string => {
  try {
    check(value, field, [], code)
    const text: string | undefined = JSON.stringify(value)
    if (text === undefined) throw refuse(code, field, 'turns into nothing by its own toJSON')
    return text
  } catch (error) {
    if (error instanceof HoldfastError) throw error
    throw new HoldfastError(
      code,
      `${field} cannot be read: ${error instanceof Error ? error.message : 'it threw'}`,
      { field },
      error,
    )
  }
}

const checkSize = ({ text, encoding }: Payload, field: string, limit: number): void => {
  const bytes = encoding === 'base64' ? decodedLength(text) : text.length * 3 <= limit ? 0 : Buffer.byteLength(text)
  if (bytes > limit) {
    throw new HoldfastError('PAYLOAD_TOO_LARGE', `${field} is ${bytes} bytes; the limit is ${limit}`, {
      field,
      bytes,
      limit,
    })
  }
}

const decodedLength = (base64: string): number =>
  (base64.length * 3) / 4 - (base64.endsWith('==') ? 2 : base64.endsWith('=') ? 1 : 0)

const check = (value: unknown, path: string, above: object[], code: Code): void => {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return
    case 'number':
      if (Number.isFinite(value)) return
      throw refuse(code, path, `is ${value}, which JSON cannot hold`)
    case 'object':
      if (value === null) return
      break
    case 'undefined':
      throw refuse(
        code,
        path,
        above.length === 0 ? 'is undefined: give a value, or null' : 'is undefined: leave it out, or use null',
      )
    case 'bigint':
      throw refuse(code, path, 'is a BigInt: send it as a string')
    default:
      throw refuse(code, path, `is a ${typeof value}, which cannot be stored`)
  }
  if (above.length >= MAX_NESTING) {
    throw refuse(
      code,
      path.slice(0, 80),
      above.includes(value) ? 'contains itself' : `is nested deeper than ${MAX_NESTING}`,
    )
  }
  above.push(value)
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) check(value[i], `${path}[${i}]`, above, code)
  } else {
    checkPlain(value, path, code)
    for (const key of Object.keys(value)) check((value as Record<string, unknown>)[key], `${path}.${key}`, above, code)
  }
  above.pop()
}

const ADVICE: Readonly<Record<string, string>> = {
  Date: 'send date.toISOString()',
  Map: 'send Object.fromEntries(map)',
  Set: 'send [...set]',
}

const checkPlain = (value: object, path: string, code: Code): void => {
  const prototype = Object.getPrototypeOf(value)
  // A plain object of another realm has that realm's Object.prototype, recognised by its null prototype.
  if (prototype !== null && Object.getPrototypeOf(prototype) !== null) {
    const name = String(prototype.constructor?.name || 'class instance')
    throw refuse(code, path, `is a ${name}, not a plain object: ${ADVICE[name] ?? 'send its data as a plain object'}`)
  }
  if (Object.getOwnPropertySymbols(value).length > 0) throw refuse(code, path, 'has a symbol as a key')
}

const refuse = (code: Code, path: string, why: string): HoldfastError =>
  new HoldfastError(code, `${path} ${why}`, { field: path })

/** The same text for the same value, independent of key order. */
export const canonicalJson = (value: unknown): string => {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${entries.map(([key, inner]) => `${JSON.stringify(key)}:${canonicalJson(inner)}`).join(',')}}`
}

/** Well-formed text without NUL, which not every store supports. */
export const cleanText = (text: string): string => text.toWellFormed().replaceAll('\0', '\uFFFD')
