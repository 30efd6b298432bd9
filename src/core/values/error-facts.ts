/** Describes a thrown value as data on the task: its name, message and code, its causes and parts, and the frames. */

import type { ErrorFacts, Instant, TaskError } from '../task.ts'
import { cleanText } from './payload.ts'

const MAX_ERROR_BYTES = 8_192
const MAX_NAME = 128
const MAX_MESSAGE = 4_096
/** Causes are shorter: their first words say what is wrong. */
const MAX_CAUSE_MESSAGE = 512
const MAX_CODE = 64
const MAX_DETAIL = 512
/** A longer chain is truncated, which also ends a circular one. */
const MAX_CAUSES = 5
const MAX_PARTS = 4
const MAX_STACK = 4_096
/** A shorter piece of a stack is not useful. */
const LEAST_STACK = 60

/** Never throws, even if getters of the thrown value do. At most 8 KiB as JSON. */
export const describeError = (thrown: unknown, at: Instant, attempt: number): TaskError => {
  const found: Found[] = []
  const facts = factsOf(thrown, MAX_MESSAGE, 0, found)
  // Names and messages of the whole chain come first; frames get the remaining space, the outermost first.
  const limit = MAX_ERROR_BYTES - 64
  trimTo(facts, limit)
  let left = limit - sizeOf(facts)
  for (const { facts: one, stack } of found) {
    if (stack === '' || left < LEAST_STACK || !isStillIn(facts, one)) continue
    const text = cutToJson(stack, Math.min(left - 16, MAX_STACK))
    if (text === '') continue
    one.stack = text
    left -= Buffer.byteLength(JSON.stringify(text)) + 10
  }
  return { ...facts, at, attempt }
}

type Writable = {
  -readonly [K in keyof ErrorFacts]: K extends 'cause' ? Writable : K extends 'errors' ? Writable[] : ErrorFacts[K]
}

/** An error of the chain. Its frames are added when the remaining space is known. */
interface Found {
  readonly facts: Writable
  readonly stack: string
}

const factsOf = (thrown: unknown, longest: number, depth: number, found: Found[]): Writable => {
  const facts: Writable = {
    name: cut(readText(thrown, 'name') || (isInstance(thrown, Error) ? 'Error' : 'Thrown'), MAX_NAME),
    message: cut(messageOf(thrown), longest),
  }
  const code = cut(codeOf(thrown), MAX_CODE)
  if (code !== '') facts.code = code
  const detail = cut(readText(thrown, 'detail'), MAX_DETAIL)
  if (detail !== '') facts.detail = detail
  found.push({ facts, stack: readText(thrown, 'stack') })
  if (depth >= MAX_CAUSES) return facts
  const cause = readField(thrown, 'cause')
  if (cause !== undefined && cause !== null) facts.cause = factsOf(cause, MAX_CAUSE_MESSAGE, depth + 1, found)
  const parts = readField(thrown, 'errors')
  // Nested parts are rare, and four levels of four would be too many.
  if (isInstance(thrown, Error) && Array.isArray(parts) && parts.length > 0) {
    const nested = depth === 0 ? 1 : MAX_CAUSES
    facts.errors = parts
      .slice(0, MAX_PARTS)
      .map((part) => factsOf(part, MAX_CAUSE_MESSAGE, Math.max(depth + 1, nested), found))
  }
  return facts
}

/** Never throws. An AggregateError often has no message: its parts have it. */
export const messageOf = (thrown: unknown): string => {
  const message = readText(thrown, 'message')
  if (message !== '') return message
  const parts = readField(thrown, 'errors')
  if (!isInstance(thrown, Error)) return textOf(thrown)
  if (!Array.isArray(parts)) return ''
  return [...new Set(parts.map((part) => readText(part, 'message')))].filter((text) => text !== '').join('; ')
}

/** Drops the innermost causes until the rest fits. */
const trimTo = (facts: Writable, limit: number): void => {
  while (sizeOf(facts) > limit && dropInnermost(facts));
  // Without causes it fits, unless escaping makes it longer.
  while (sizeOf(facts) > limit && facts.message !== '')
    facts.message = facts.message.slice(0, facts.message.length / 2).toWellFormed()
}

const dropInnermost = (facts: Writable): boolean => {
  if (facts.errors !== undefined) {
    facts.errors.pop()
    if (facts.errors.length === 0) delete facts.errors
    return true
  }
  if (facts.cause === undefined) return false
  if (!dropInnermost(facts.cause)) delete facts.cause
  return true
}

const isStillIn = (root: Writable, one: Writable): boolean =>
  root === one ||
  (root.cause !== undefined && isStillIn(root.cause, one)) ||
  (root.errors?.some((part) => isStillIn(part, one)) ?? false)

const sizeOf = (facts: Writable): number => Buffer.byteLength(JSON.stringify(facts))

/** instanceof that never throws: a handler may throw or return a hostile proxy. */
export const isInstance = <T>(value: unknown, kind: abstract new (...args: never[]) => T): value is T => {
  try {
    return value instanceof kind
  } catch {
    return false
  }
}

/** The text in a field, or ''. Never throws. */
export const readText = (thrown: unknown, field: string): string => {
  const value = readField(thrown, field)
  return typeof value === 'string' ? value : ''
}

/** What is in a field, or undefined. Never throws. */
export const readField = (thrown: unknown, field: string): unknown => {
  try {
    return (thrown as Record<string, unknown> | null | undefined)?.[field]
  } catch {
    return undefined
  }
}

const codeOf = (thrown: unknown): string => {
  const code = readField(thrown, 'code')
  return typeof code === 'string' ? code : typeof code === 'number' ? String(code) : ''
}

const textOf = (thrown: unknown): string => {
  try {
    return typeof thrown === 'object' && thrown !== null ? (JSON.stringify(thrown) ?? 'unknown error') : String(thrown)
  } catch {
    return 'an error that cannot be printed'
  }
}

const cut = (text: string, bytes: number): string => {
  const clean = cleanText(text.length > bytes ? text.slice(0, bytes) : text)
  if (Buffer.byteLength(clean) <= bytes) return clean
  return Buffer.from(clean)
    .subarray(0, bytes)
    .toString('utf8')
    .replace(/\uFFFD+$/, '')
}

/** Truncates so that the JSON text fits too: line ends and quotes are escaped there. */
const cutToJson = (text: string, bytes: number): string => {
  let kept = cut(text, bytes)
  for (let over = jsonBytes(kept) - bytes; over > 0; over = jsonBytes(kept) - bytes)
    kept = cut(kept, Buffer.byteLength(kept) - over)
  return kept
}

const jsonBytes = (text: string): number => Buffer.byteLength(JSON.stringify(text)) - 2
