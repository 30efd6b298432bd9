/** From a history to the stretches of a task's life: what it waited for, and each run. */
import type { Entry, Task } from './types.ts'

export interface Span {
  readonly kind: 'delayed' | 'waiting' | 'running'
  readonly from: number
  /** null: it still lasts. */
  readonly to: number | null
  /** Of a run: which one, who ran it, and the move that ended it. */
  readonly attempt?: number
  readonly by?: string
  readonly ending?: Entry
  /** The status before that, when that says more than the move: a delay before a retry. */
  readonly after?: Entry
}

/** Attempts are counted from the end: the middle of a long history may have been dropped. */
export const attemptsOf = ({ history, attempts }: Task): ReadonlyMap<number, number> => {
  const claims = history.filter(({ move }) => move === 'claim')
  return new Map(claims.map(({ n }, i) => [n, attempts - (claims.length - 1 - i)]))
}

export const spansOf = (task: Task): readonly Span[] => {
  const numbers = attemptsOf(task)
  // What asks a running task to stop does not end the run.
  const entries = task.history.filter(({ move }) => move !== 'request-cancel')
  return entries.flatMap((entry, i): Span[] => {
    const next = entries[i + 1]
    // The middle of a long history was dropped: nothing is known of the time after this entry.
    if (next !== undefined && next.n > entry.n + 1 && !task.history.some(({ n }) => n === entry.n + 1)) return []
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
    const due = Date.parse(entry.availableAt ?? (next === undefined ? task.availableAt : entry.at))
    const delayedTo = to === null ? due : Math.min(due, to)
    const spans: Span[] = []
    if (delayedTo > from) spans.push({ kind: 'delayed', from, to: delayedTo, after: entry })
    if (to === null || to > delayedTo)
      spans.push({ kind: 'waiting', from: Math.max(from, delayedTo), to, after: entry })
    return spans
  })
}
