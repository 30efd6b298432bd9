/** Parses durations as people write them, and formats milliseconds for people. */
import ms from 'ms'
import { HoldfastError } from '../errors.ts'

/** A duration by its units; they are added. */
export interface DurationParts {
  readonly days?: number
  readonly hours?: number
  readonly minutes?: number
  readonly seconds?: number
  readonly milliseconds?: number
}

/** `'500ms'`, `'30s'`, `'5m'`, `'1h30m'`, `'7d'`, `{ minutes: 5 }`, or 0. A bare number is refused, because it has no unit. */
export type Duration = string | DurationParts | 0

const PART_MS = { days: 86_400_000, hours: 3_600_000, minutes: 60_000, seconds: 1_000, milliseconds: 1 } as const
const WRITTEN = /^(\d+(\.\d+)?(ms|s|m|h|d|w))+$/
const TOKEN = /\d+(?:\.\d+)?(?:ms|s|m|h|d|w)/g
/** A hundred years. A longer duration is a mistake, and instants would lose precision. */
export const LONGEST_DURATION = 36_525 * 86_400_000

/** Milliseconds of `value`, or INVALID_DURATION with `field` named. */
export const parseDuration = (value: Duration, field: string): number => {
  const total = typeof value === 'string' ? ofText(value, field) : ofParts(value, field)
  if (total > LONGEST_DURATION) throw invalid(field, value, 'is longer than a hundred years')
  return Math.round(total)
}

const ofText = (text: string, field: string): number => {
  const compact = text
    .trim()
    .toLowerCase()
    .replace(/(?<=[a-z])\s+(?=\d)/g, '')
  if (compact === '0') return 0
  if (/^\d+(\.\d+)?$/.test(compact)) throw invalid(field, text, `has no unit: write '${compact}s' or '${compact}ms'`)
  if (!WRITTEN.test(compact)) throw invalid(field, text, "cannot be read: write '500ms', '30s', '5m', '1h30m' or '7d'")
  let total = 0
  for (const [token] of compact.matchAll(TOKEN)) total += ms(token as ms.StringValue)
  return total
}

const ofParts = (value: unknown, field: string): number => {
  if (value === 0) return 0
  if (typeof value === 'number') {
    throw invalid(field, value, `is a bare number: write '${value}ms' or '${value}s', so that the unit is clear`)
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw invalid(field, value, "must be a duration such as '30s' or { minutes: 5 }")
  }
  if (value instanceof Date)
    throw invalid(field, value, "is a Date, which is an instant: a duration is written '30s' or { minutes: 5 }")
  const parts = Object.entries(value)
  if (parts.length === 0)
    throw invalid(field, value, 'is empty: name at least one of days, hours, minutes, seconds, milliseconds')
  let total = 0
  for (const [name, count] of parts) {
    const unit = PART_MS[name as keyof typeof PART_MS]
    if (unit === undefined) throw invalid(field, value, `has an unknown part '${name}'`)
    if (typeof count !== 'number' || !Number.isFinite(count) || count < 0) {
      throw invalid(field, value, `has a part '${name}' that is not a number of zero or more`)
    }
    total += count * unit
  }
  return total
}

const invalid = (field: string, value: unknown, why: string): HoldfastError =>
  new HoldfastError('INVALID_DURATION', `${field}: ${describe(value)} ${why}`, { field })

const describe = (value: unknown): string => {
  if (typeof value === 'string') return `'${value.length > 40 ? `${value.slice(0, 40)}…` : value}'`
  if (typeof value === 'number') return String(value)
  if (value === null || value === undefined) return String(value)
  return typeof value === 'object' ? 'the value given' : `a ${typeof value}`
}

const UNITS: readonly (readonly [number, string])[] = [
  [86_400_000, 'd'],
  [3_600_000, 'h'],
  [60_000, 'm'],
  [1_000, 's'],
]

/** At most two units: `2h 30m`, `45s`, `320ms`. */
export const formatDuration = (duration: number): string => {
  const total = Math.abs(Math.round(duration))
  if (total < 1_000) return `${total}ms`
  const shown: string[] = []
  let rest = total
  for (const [size, unit] of UNITS) {
    const count = Math.floor(rest / size)
    rest -= count * size
    if (count > 0) shown.push(`${count}${unit}`)
    else if (shown.length > 0) break
    if (shown.length === 2) break
  }
  return shown.join(' ')
}
