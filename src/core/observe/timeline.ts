/** The history of a task merged by time with what its handler recorded and the signals that it was sent. */
import type { HistoryEntry, Instant, JournalEntry, TaskRecord } from '../task.ts'

/**
 * `step`: a result was recorded. `sleep` and `wait`: a durable wait began. `wake`: an operator ended a sleep. `take`: a step took a signal.
 * `timeout`: no signal came in time. `signal`: a signal arrived.
 */
export interface StepMoment {
  /** When it was recorded. */
  readonly at: Instant
  /** What was recorded: a result, or the beginning or end of a sleep or a wait. */
  readonly kind: JournalEntry['kind']
  /** The name of the step; of `signal`, the name of the signal. */
  readonly name: string
  /** Of `signal` and `wake`: who sent it. */
  readonly by?: string
  /** Of `sleep` and `wait`: when it ends at the latest; null: never. */
  readonly until?: Instant | null
  /** Of `wait`: the name of the signal. */
  readonly signal?: string
  /** Of `signal` and `take`. */
  readonly signalId?: string
  /** Of `step` and `signal`: the length of the value as text; 0 if there is none. */
  readonly size?: number
  /** Of `take`: why the schema of the step refused the value. */
  readonly error?: string
}

/** A move, a step or a signal of a task. */
export type TimelineEntry = HistoryEntry | StepMoment

/** Whether an entry of a timeline is a move. */
export const isMove = (entry: TimelineEntry): entry is HistoryEntry => 'move' in entry

export const timelineOf = ({ history, journal }: TaskRecord): readonly TimelineEntry[] => {
  const left = [...journal]
  const merged: TimelineEntry[] = []
  for (const entry of history) {
    while (left.length > 0 && isBefore(left[0]!, entry)) merged.push(momentOf(left.shift()!))
    merged.push(entry)
  }
  return [...merged, ...left.map(momentOf)]
}

/** In the same millisecond: a run begins before its steps and ends after them; a signal comes after the park that it ends, and before the claim that it causes. */
const isBefore = (moment: JournalEntry, { at, move }: HistoryEntry): boolean => {
  if (moment.at !== at) return moment.at < at
  const isSent = moment.kind === 'signal' || moment.kind === 'wake'
  if (move === 'claim') return isSent
  return move === 'park' ? !isSent : move !== 'submit'
}

const momentOf = ({ n: _, op: __, encoding: ___, value, ...entry }: JournalEntry): StepMoment => ({
  ...entry,
  ...(entry.kind === 'step' || entry.kind === 'signal' ? { size: value?.length ?? 0 } : null),
})
