/** Groups equal errors: by name and by message without the parts that differ between tasks, including causes. */
import type { ErrorFacts, TaskError } from '../task.ts'

/** What dead letters of the same kind have in common. */
export interface Fingerprint {
  /** Short and stable: people type it to name the group. */
  readonly fingerprint: string
  readonly name: string
  /** The message with `#` for numbers and ids, and `'…'` for quoted values; quoted names of code and schema stay. */
  readonly pattern: string
}

/** A longer part of the message does not distinguish errors better, and would make grouping slow. */
const LONGEST = 500
/** UUIDs, 0x…, other hexadecimal ids of eight digits or more (with a numeral, or it is a word), and numbers. */
const VARIABLE =
  /\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b|\b0x[0-9a-f]+\b|\b(?=[a-f]*\d)[0-9a-f]{8,}\b|\d+(?:\.\d+)*/gi
/** Quotes, not apostrophes: no letter before the first or after the second. */
const QUOTED = /(?<!\w)(["'`])(?:(?!\1).)+\1(?!\w)/g

/** The name of a property, a table or a module distinguishes bugs; any other quoted text is a value of the task. */
const NAMES =
  /\b(?:reading|setting|property|properties|method|function|variable|argument|parameter|field|column|table|relation|view|index|constraint|sequence|schema|database|role|extension|operator|type|class|module|package|import|export|command|option|event|queue|bucket|stream|route)\s+$/i
const NAME = /^[\w$.#@/:-]{1,80}$/
const LONGEST_WORD = 24

const UNEVEN = /\s\s|[^\S ]/

export const patternOf = (message: string): string => {
  const cut = message.slice(0, LONGEST)
  return (UNEVEN.test(cut) ? cut.replace(/\s+/g, ' ') : cut)
    .trim()
    .replace(VARIABLE, '#')
    .replace(QUOTED, (quoted: string, mark: string, at: number, whole: string) => {
      const isName = NAME.test(quoted.slice(1, -1)) && NAMES.test(whole.slice(Math.max(0, at - LONGEST_WORD), at))
      return isName ? quoted : `${mark}…${mark}`
    })
}

/** The fingerprint of an error: its name and its message without what varies. */
export const fingerprintOf = (error: Pick<TaskError, 'name' | 'message' | 'cause' | 'errors'> | null): Fingerprint => {
  const name = error?.name ?? 'Error'
  const pattern = error === null ? '' : chainOf(error)
  return { fingerprint: hash(`${name}\n${pattern}`), name, pattern }
}

/** "fetch failed" covers many bugs; its causes distinguish them. */
const chainOf = ({ message, cause, errors }: Omit<ErrorFacts, 'name'>): string => {
  const own = patternOf(message)
  const inner = cause ?? errors?.[0]
  return inner === undefined ? own : `${own}; caused by ${inner.name}: ${chainOf(inner)}`
}

/** 53 bits of FNV-like mixing (cyrb53): enough for thousands of groups, but not collision-resistant against an attacker. */
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
