/** The lines in which the tasks of a queue wait, and the orders of SQLite in the words of JavaScript. */
import type { Instant } from '../../../core/task.ts'

/** 0 and 1: tasks without a group; 2 and 3: with one. 1 and 3: tasks that may expire. */
export type LineKind = 0 | 1 | 2 | 3

/** The tasks of one type and kind at its next priority. */
export interface Line {
  readonly type: string
  readonly kind: LineKind
  priority: number
  /** Its other priorities are lines of their own. */
  readonly isOnly: boolean
}

export const isGrouped = ({ kind }: Line): boolean => kind >= 2
export const mayExpire = ({ kind }: Line): boolean => kind % 2 === 1

/** Where a task stands in its line. */
export type Candidate = [key: number, availableAt: Instant, id: string]

export const inOrder = (a: Candidate, b: Candidate): number => a[1] - b[1] || (a[2] < b[2] ? -1 : a[2] > b[2] ? 1 : 0)

/** SQLite compares the bytes of UTF-8. Code units have the same order, but for surrogates, which stand for what comes last. */
export const byBytes = (a: string, b: string): number => {
  const length = Math.min(a.length, b.length)
  for (let i = 0; i < length; i++) {
    const [one, other] = [a.charCodeAt(i), b.charCodeAt(i)]
    if (one !== other) return rank(one) - rank(other)
  }
  return a.length - b.length
}

const rank = (unit: number): number => (unit >= 0xd800 && unit < 0xe000 ? unit + 0x10000 : unit)
