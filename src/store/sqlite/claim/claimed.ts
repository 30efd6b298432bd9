/** The encoding of claimed tasks for the message from the thread: numbers in one block, and only the texts that differ, because copying dominates the cost. */
import type { TaskRecord } from '../../../core/task.ts'
import { CLAIMED_NUMBERS, CLAIMED_TEXTS, type ClaimedRow, type ClaimedWith, decodeClaimed } from '../../sql/claimed.ts'

/** Rows are read before the claim is written, so revision and attempts are incremented here. */
const numbers = CLAIMED_NUMBERS.map((column) =>
  column === 'revision' || column === 'attempts' ? `${column} + 1` : column,
)
export const CLAIMED_COLUMNS = ['key', ...numbers, ...CLAIMED_TEXTS].join(', ')

const WIDTH = 1 + CLAIMED_NUMBERS.length
/** Id and input. */
const COMMON = 2
/** The number of texts that most tasks lack. The type is between them and the common ones. */
const RARE = CLAIMED_TEXTS.length - COMMON - 1
const FIRST_RARE = WIDTH + COMMON + 1

export interface Claimed {
  /** WIDTH per task; NaN stands for null. */
  readonly numbers: Float64Array
  /** Id and input of each task. */
  readonly texts: readonly string[]
  /** One type for all tasks, or one per task. */
  readonly types: string | readonly string[]
  /** RARE per task; null if no task has any. */
  readonly rare: readonly (string | null)[] | null
}

export const packClaimed = (rows: readonly ClaimedRow[]): Claimed => {
  const packed = new Float64Array(rows.length * WIDTH)
  const texts: string[] = []
  const types: string[] = []
  let isPlain = true
  let isOneType = true
  for (const [i, row] of rows.entries()) {
    for (let n = 0; n < WIDTH; n++) packed[i * WIDTH + n] = (row[n] as number | null) ?? Number.NaN
    texts.push(row[WIDTH] as string, row[WIDTH + 1] as string)
    types.push(row[WIDTH + COMMON] as string)
    isOneType &&= row[WIDTH + COMMON] === types[0]
    for (let n = FIRST_RARE; isPlain && n < FIRST_RARE + RARE; n++) isPlain = row[n] === null
  }
  const rare = isPlain ? null : (rows.flatMap((row) => row.slice(FIRST_RARE)) as (string | null)[])
  return { numbers: packed, texts, types: isOneType ? types[0]! : types, rare }
}

export const unpackClaimed = (claimed: Claimed | null, facts: ClaimedWith): TaskRecord[] => {
  if (claimed === null) return []
  const tasks: TaskRecord[] = []
  for (let i = 0; i * WIDTH < claimed.numbers.length; i++) tasks.push(decodeClaimed(unpackRow(claimed, i), facts))
  return tasks
}

const unpackRow = ({ numbers: packed, texts, types, rare }: Claimed, i: number): ClaimedRow => {
  const row: ClaimedRow = []
  for (let n = 0; n < WIDTH; n++) {
    const number = packed[i * WIDTH + n]!
    row.push(Number.isNaN(number) ? null : number)
  }
  row.push(texts[i * COMMON]!, texts[i * COMMON + 1]!, typeof types === 'string' ? types : types[i]!)
  for (let n = 0; n < RARE; n++) row.push(rare === null ? null : rare[i * RARE + n]!)
  return row
}
