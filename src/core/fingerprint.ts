/** Which errors are the same error: the name, and the message without what differs from one task to the next. */
import type { TaskError } from './task.ts'

export interface Fingerprint {
  /** Short, stable, without meaning: what a person types to name the group. */
  readonly fingerprint: string
  readonly name: string
  /** The message with `#` for numbers and ids, and `'…'` for what stood in quotes. */
  readonly pattern: string
}

/** More of a message does not tell errors apart any better, and a long one must not make a look at many slow. */
const LONGEST = 500
/** UUIDs, 0x…, other hexadecimal ids of eight digits or more (with a numeral, or it is a word), and numbers. */
const VARIABLE =
  /\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b|\b0x[0-9a-f]+\b|\b(?=[a-f]*\d)[0-9a-f]{8,}\b|\d+(?:\.\d+)*/gi
/** Not an apostrophe: nothing of a word before the first, nor after the second. */
const QUOTED = /(?<!\w)(["'`])(?:(?!\1).)+\1(?!\w)/g

const UNEVEN = /\s\s|[^\S ]/

export const patternOf = (message: string): string => {
  const cut = message.slice(0, LONGEST)
  return (UNEVEN.test(cut) ? cut.replace(/\s+/g, ' ') : cut).trim().replace(VARIABLE, '#').replace(QUOTED, '$1…$1')
}

export const fingerprintOf = (error: Pick<TaskError, 'name' | 'message'> | null): Fingerprint => {
  const name = error?.name ?? 'Error'
  const pattern = patternOf(error?.message ?? '')
  return { fingerprint: hash(`${name}\n${pattern}`), name, pattern }
}

/** 53 bits of FNV-like mixing (cyrb53): enough to tell thousands of groups apart, and no promise against malice. */
const hash = (text: string): string => {
  let high = 0xdeadbeef
  let low = 0x41c6ce57
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    high = Math.imul(high ^ unit, 2_654_435_761)
    low = Math.imul(low ^ unit, 1_597_334_677)
  }
  high = Math.imul(high ^ (high >>> 16), 2_246_822_507) ^ Math.imul(low ^ (low >>> 13), 3_266_489_909)
  low = Math.imul(low ^ (low >>> 16), 2_246_822_507) ^ Math.imul(high ^ (high >>> 13), 3_266_489_909)
  return (4_294_967_296 * (2_097_151 & low) + (high >>> 0)).toString(36).padStart(11, '0')
}
