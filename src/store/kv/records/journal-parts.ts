/** Which entries of a journal stay in the body of their task. Every heartbeat writes the body again, so it must stay small. */
import type { JournalEntry } from '../../../core/task.ts'
import { chunkName } from './bodies.ts'

/** An entry with a longer value has a key of its own. */
const LONGEST_VALUE = 4_096
/** When the entries in the body are longer than this together, they move to a key of their own. */
const LONGEST_REST = 32_768

export interface SplitJournal {
  readonly parts: readonly (readonly [name: string, entries: readonly JournalEntry[]])[]
  /** Stays in the body. */
  readonly rest: readonly JournalEntry[]
}

export const splitJournal = (journal: readonly JournalEntry[]): SplitJournal => {
  let length = 0
  for (const entry of journal) length += lengthOf(entry)
  if (length <= LONGEST_VALUE) return { parts: [], rest: journal }
  const large = journal.filter(({ value = '' }) => value.length > LONGEST_VALUE)
  const small = large.length === 0 ? journal : journal.filter(({ value = '' }) => value.length <= LONGEST_VALUE)
  const ofSmall = small.reduce((sum, entry) => sum + lengthOf(entry), 0)
  const parts = large.map((entry) => [chunkName(entry.n), [entry]] as const)
  if (ofSmall <= LONGEST_REST) return { parts, rest: small }
  return { parts: [...parts, [chunkName(small[0]!.n), small]], rest: [] }
}

/** About how many characters the entry adds to the body. */
const lengthOf = ({ name, value = '' }: JournalEntry): number => 150 + name.length + value.length
