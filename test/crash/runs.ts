/** The checker: what the store says of its tasks against what the witnesses saw. Every sentence it returns is a broken promise. */
import type { HistoryEntry } from '../../src/core/task.ts'
import type { TaskRecord } from '../../src/store/store.ts'
import { openAt } from './address.ts'
import type { WitnessLine } from './witness.ts'

export interface Evidence {
  readonly submitted: readonly string[]
  readonly records: readonly (TaskRecord | null)[]
  readonly witness: readonly WitnessLine[]
  readonly leaseTtl: number
}

/** Moves after which another run of the task is to be expected. */
const RERUN: ReadonlySet<string> = new Set(['lose-lease', 'fail', 'time-out', 'retry', 'release', 'reschedule'])

export const readRecords = async (file: string, ids: readonly string[]): Promise<(TaskRecord | null)[]> => {
  const store = await openAt(file, false)
  try {
    const records: (TaskRecord | null)[] = []
    for (let i = 0; i < ids.length; i += 500) records.push(...(await store.get(ids.slice(i, i + 500))))
    return records
  } finally {
    await store.close()
  }
}

export const violations = ({ submitted, records, witness, leaseTtl }: Evidence): string[] => {
  const seen = Map.groupBy(
    witness.filter(({ task }) => task !== undefined),
    ({ task }) => task!,
  )
  const found = submitted.flatMap((id, i) => {
    const record = records[i] ?? null
    const lines = seen.get(id) ?? []
    if (record === null) return [`task ${id} is lost`]
    return [...ends(record, lines), ...fences(record, lines), ...explained(record, lines), ...leases(record, leaseTtl)]
  })
  const known = new Set(submitted)
  for (const id of seen.keys()) if (!known.has(id)) found.push(`task ${id} ran, but nobody submitted it`)
  return found
}

/** Completed, and by a run that the witness saw from its start to its end, with that run's output. */
const ends = ({ id, status, output, attempts }: TaskRecord, lines: readonly WitnessLine[]): string[] => {
  if (status !== 'completed') return [`task ${id} is ${status}, not completed`]
  const { fence } = JSON.parse(output ?? 'null') ?? { fence: null }
  const ran = lines.some((line) => line.what === 'end' && line.fence === fence)
  const wrong: string[] = []
  if (!ran) wrong.push(`task ${id} is completed, but no witness saw that run end`)
  if (fence !== attempts) wrong.push(`task ${id} has the output of run ${fence}, but run ${attempts} was the last`)
  return wrong
}

/** Each run has a fence above those of the runs that began before it. */
const fences = ({ id }: TaskRecord, lines: readonly WitnessLine[]): string[] => {
  const starts = lines.filter(({ what }) => what === 'start')
  return starts.flatMap(({ fence }, i) => {
    const before = starts[i - 1]
    return before !== undefined && before.fence! >= fence!
      ? [`task ${id}: run ${fence} began after run ${before.fence}`]
      : []
  })
}

/** A second run needs a first one that was lost or given back. */
const explained = ({ id, history }: TaskRecord, lines: readonly WitnessLine[]): string[] => {
  const starts = lines.filter(({ what }) => what === 'start').length
  const reasons = history.filter(({ move }) => RERUN.has(move)).length
  return starts - 1 > reasons ? [`task ${id} ran ${starts} times, with ${reasons} reasons in its history`] : []
}

/** One lease at a time, each ended before the next, none taken before it could have lapsed; nothing after the end. */
const leases = ({ id, history }: TaskRecord, leaseTtl: number): string[] => {
  const wrong: string[] = []
  let claimed: HistoryEntry | null = null
  for (const [i, entry] of history.entries()) {
    if (entry.n !== i + 1) wrong.push(`task ${id}: entry ${i + 1} of its history has number ${entry.n}`)
    if (entry.move === 'claim') {
      if (claimed !== null) wrong.push(`task ${id} was claimed while it was leased`)
      claimed = entry
      continue
    }
    if (entry.move === 'lose-lease' && claimed !== null && entry.at - claimed.at < leaseTtl) {
      wrong.push(`task ${id} lost a lease of ${leaseTtl} ms after ${entry.at - claimed.at} ms`)
    }
    if (entry.move !== 'submit' && claimed === null) wrong.push(`task ${id}: ${entry.move} without a lease`)
    else if (entry.move !== 'submit' && entry.op !== claimed?.op)
      wrong.push(`task ${id}: ${entry.move} under a lease that is not its own`)
    claimed = null
  }
  return wrong
}
