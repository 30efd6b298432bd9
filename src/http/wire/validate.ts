/** Validates a body against the route's schema, with the subset of JSON Schema that the schemas use. The library checks what values mean. */
import { HoldfastError } from '../../index.ts'
import type { Schema } from './schemas.ts'

const TYPES: Readonly<Record<string, (value: unknown) => boolean>> = {
  string: (value) => typeof value === 'string',
  integer: Number.isSafeInteger,
  number: (value) => typeof value === 'number',
  boolean: (value) => typeof value === 'boolean',
  null: (value) => value === null,
  array: Array.isArray,
  object: (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
}

/** Throws INVALID_OPTION with the path of the error. */
export const checkAgainst = (schema: Schema, value: unknown, path: string): void => {
  const { type, properties, required, items, additionalProperties } = schema
  const types = type === undefined ? [] : typeof type === 'string' ? [type] : type
  if (types.length > 0 && !types.some((one) => TYPES[one]!(value))) throw refused(path, `must be ${types.join(' or ')}`)
  if (schema.enum !== undefined && !schema.enum.includes(value as never))
    throw refused(path, `must be one of ${schema.enum.join(', ')}`)
  if (Array.isArray(value)) {
    if (schema.maxItems !== undefined && value.length > schema.maxItems)
      throw refused(path, `has ${value.length} items; the maximum is ${schema.maxItems}`)
    if (items !== undefined) for (const [i, item] of value.entries()) checkAgainst(items, item, `${path}[${i}]`)
  } else if (properties !== undefined && typeof value === 'object' && value !== null) {
    for (const name of required ?? []) {
      if (!Object.hasOwn(value, name)) throw refused(`${path}.${name}`, 'is required')
    }
    for (const [name, inner] of Object.entries(value)) {
      const known = Object.hasOwn(properties, name) ? properties[name] : undefined
      if (known !== undefined) checkAgainst(known, inner, `${path}.${name}`)
      else if (additionalProperties === false) throw refused(`${path}.${name}`, 'is not allowed here')
    }
  }
}

const refused = (path: string, why: string): HoldfastError =>
  new HoldfastError('INVALID_OPTION', `${path} ${why}`, { field: path })
