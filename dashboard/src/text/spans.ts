/** Derives the periods of a task from its history: each wait and each run. */
import type { Entry, Task } from '../types.ts'

export interface Span {
  readonly kind: 'delayed' | 'waiting' | 'running'
  readonly from: number
  /** null if it has not ended. */
  readonly to: number | null
  /** For a run: its number, its worker, and the move that ended it. */
  readonly attempt?: number
  readonly by?: string
  readonly ending?: Entry
  /** The previous status if it says more than the move: a delay before a retry. */
  readonly after?: Entry
}

/** Counts attempts from the end, because the middle of a long history may have been dropped. */
export const attemptsOf = ({ history, attempts }: Task): ReadonlyMap<number, number> => {
  const claims = history.filter(({ move }) => move === 'claim')
  return new Map(claims.map(({ n }, i) => [n, attempts - (claims.length - 1 - i)]))
}

/** A history keeps the first move and the last 99. Steps are numbered like moves, and are not among them. */
export const mayLackMoves = ({ history, steps }: Task): boolean => history.length >= 100 || (steps ?? []).length === 0

export const spansOf = (task: Task): readonly Span[] => {
  const numbers = attemptsOf(task)
  // A cancel request does not end the run.
  const entries = task.history.filter(({ move }) => move !== 'request-cancel')
  return entries.flatMap((entry, i): Span[] => {
    const next = entries[i + 1]
    // The middle of the history was dropped: the time after this entry is unknown.
    if (
      next !== undefined &&
      mayLackMoves(task) &&
      next.n > entry.n + 1 &&
      !task.history.some(({ n }) => n === entry.n + 1)
    )
      return []
    const from = Date.parse(entry.at)
    const to = next === undefined ? null : Date.parse(next.at)
    if (entry.to === 'running') {
      const attempt = numbers.get(entry.n)
      return [
        {
          kind: 'running',
          from,
          to,
          by: entry.by,
          ...(attempt !== undefined && { attempt }),
          ...(next && { ending: next }),
        },
      ]
    }
    if (entry.to !== 'pending') return []
    // It has no certain end.
    if (next === undefined && task.parked) return [{ kind: 'delayed', from, to: null, after: entry }]
    const due = Date.parse(entry.availableAt ?? (next === undefined ? task.availableAt : entry.at))
    const delayedTo = to === null ? due : Math.min(due, to)
    const spans: Span[] = []
    if (delayedTo > from) spans.push({ kind: 'delayed', from, to: delayedTo, after: entry })
    if (to === null || to > delayedTo)
      spans.push({ kind: 'waiting', from: Math.max(from, delayedTo), to, after: entry })
    return spans
  })
}
