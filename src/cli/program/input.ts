/** Parses what people type: JSON, whole numbers, name=value. Every error names its field. */
import { readFile } from 'node:fs/promises'
import { buffer } from 'node:stream/consumers'
import { HoldfastError, type RetryPolicyName, type RetryPolicyOptions } from '../../index.ts'
import { messageOf } from '../output/errors.ts'

const refused = (field: string, why: string, details: Record<string, unknown> = {}): HoldfastError =>
  new HoldfastError('INVALID_OPTION', `${field} ${why}`, { field, ...details })

/** NaN if the text is not a whole number, so that the API reports the allowed range. */
export const integer = (text: string): number => (/^[+-]?\d{1,15}$/.test(text) ? Number(text) : Number.NaN)

/** A whole number, or `unlimited`, which the API calls null. */
export const limit = (text: string): number | null => (text.toLowerCase() === 'unlimited' ? null : integer(text))

/** An instant in ISO 8601, or epoch milliseconds. */
export const instantText = (text: string): string | number => (/^\d{1,16}$/.test(text) ? Number(text) : text)

export const tag = (text: string): Pair => pair(text, '--tag', 'name=value')

export const tags = (texts: readonly string[]): Record<string, string> => pairs(texts, '--tag', 'name=value')

/** `completed=7d`, by status; the API checks the statuses and the durations. */
export const retention = (texts: readonly string[]): Record<string, string | 0> =>
  Object.fromEntries(
    Object.entries(pairs(texts, '--retention', 'status=duration')).map(([status, age]) => [
      status,
      age === '0' ? 0 : age,
    ]),
  )

interface Pair {
  readonly name: string
  readonly value: string
}

const pair = (text: string, flag: string, form: string): Pair => {
  const at = text.indexOf('=')
  if (at < 1) throw refused(flag, `'${text}' must be written ${form}`)
  return { name: text.slice(0, at), value: text.slice(at + 1) }
}

const pairs = (texts: readonly string[], flag: string, form: string): Record<string, string> => {
  const given: Record<string, string> = Object.create(null)
  for (const { name, value } of texts.map((text) => pair(text, flag, form))) {
    if (name in given) throw refused(flag, `'${name}' is given twice`)
    given[name] = value
  }
  return given
}

/** The name of a retry policy, or one as JSON. */
export const retryPolicy = (text: string): RetryPolicyName | RetryPolicyOptions => {
  if (!text.trimStart().startsWith('{')) return text as RetryPolicyName
  try {
    return JSON.parse(text) as RetryPolicyOptions
  } catch (error) {
    throw refused('--retry-policy', `is not JSON: ${messageOf(error)}`)
  }
}

/** JSON on the command line, `-` for standard input, `@path` for a file. */
export const inputValue = async (text: string): Promise<unknown> => {
  if (text === '-') return parseJson(decode(await buffer(process.stdin)))
  if (!text.startsWith('@')) return parseJson(text)
  const path = text.slice(1)
  try {
    return parseJson(decode(await readFile(path)))
  } catch (error) {
    if (error instanceof HoldfastError) throw error
    throw refused('--input', `cannot read '${path}': ${messageOf(error)}`)
  }
}

const decode = (bytes: Uint8Array): string => {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    throw refused('--input', 'is not valid UTF-8')
  }
}

/** Strict: also refuses numbers that JSON.parse would change silently. */
export const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text, (name, value, context?: { readonly source?: string }) => {
      if (typeof value === 'number') checkNumber(name, value, context?.source)
      return value
    })
  } catch (error) {
    if (error instanceof HoldfastError) throw error
    if (error instanceof RangeError) throw refused('--input', 'is nested too deeply')
    throw malformed(text, messageOf(error))
  }
}

const checkNumber = (name: string, value: number, source: string | undefined): void => {
  const at = name === '' ? '' : ` at '${name}'`
  if (!Number.isFinite(value))
    throw refused('--input', `has the number ${short(source)}${at}, which is too large to store: send it as a string`)
  if (source !== undefined && /^-?\d{16,}$/.test(source) && BigInt(source) !== BigInt(value)) {
    throw refused(
      '--input',
      `has the integer ${short(source)}${at}, which would be stored as ${BigInt(value)}: send it as a string`,
    )
  }
}

const short = (source = 'Infinity'): string => (source.length > 40 ? `${source.slice(0, 40)}…` : source)

const malformed = (text: string, message: string): HoldfastError => {
  if (text.trim() === '') return refused('--input', 'is empty: write a JSON value, such as {} or null', { position: 0 })
  const position = positionOf(text, message)
  const before = text.slice(0, position)
  const line = before.split('\n').length
  const column = position - before.lastIndexOf('\n')
  const what = message.startsWith('"')
    ? `Unexpected token '${text[position]}'`
    : message.replace(/( in JSON)? at position \d+.*$/s, '').replace(/, (\.\.\.)?".*is not valid JSON$/s, '')
  return refused('--input', `is not JSON: ${what} at position ${position} (line ${line}, column ${column})`, {
    position,
  })
}

/** The parser does not always report the position: then it is the end of the shortest prefix that is invalid. */
const positionOf = (text: string, message: string): number => {
  const found = /at position (\d+)/.exec(message)?.[1]
  if (found !== undefined) return Number(found)
  if (message.startsWith('Unexpected end')) return text.length
  let [good, bad] = [0, text.length]
  while (good + 1 < bad) {
    const middle = (good + bad) >> 1
    if (isUnacceptable(text.slice(0, middle))) bad = middle
    else good = middle
  }
  return good
}

const isUnacceptable = (text: string): boolean => {
  try {
    JSON.parse(text)
    return false
  } catch (error) {
    return (error as Error).message.endsWith('is not valid JSON')
  }
}

/** Leaves out an option that was not given, instead of passing undefined. */
export const given = <Given, Value = Given>(
  name: string,
  value: Given | undefined,
  read?: (value: Given) => Value,
): Record<string, unknown> => (value === undefined ? {} : { [name]: read === undefined ? value : read(value) })

export const required = (value: string | undefined, flag: string): string => {
  if (value !== undefined) return value
  throw new HoldfastError('INVALID_OPTION', `${flag} is required`, { field: flag })
}
