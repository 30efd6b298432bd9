/** Compares what the demo submitted with what the store holds at the end, task by task. Pure. */
import type { HistoryEntry, Task } from '../../index.ts'
import { KIND_NAMES, type KindName } from './kinds.ts'

export interface KindAccount {
  readonly kind: KindName
  readonly submitted: number
  readonly completed: number
  readonly dead: number
  readonly expired: number
  readonly cancelled: number
  /** Submitted, but not ended or not found. Must be 0. */
  readonly missing: number
  readonly attempts: number
  readonly retries: number
  readonly reschedules: number
}

/** A task that the killed worker held, and its outcome. */
export interface Orphan {
  readonly id: string
  readonly kind: string
  readonly foundBy: string
  /** The next worker that claimed it, or null. */
  readonly ranAgainOn: string | null
  readonly status: string
  readonly attempts: number
}

export interface Account {
  readonly kinds: readonly KindAccount[]
  readonly submitted: number
  readonly accounted: number
  readonly orphans: readonly Orphan[]
  /** Every submitted task has ended once, and every orphan was recovered. */
  readonly isComplete: boolean
}

/** `submitted`: the ids that submit returned, with their kind. */
export const account = (
  submitted: ReadonlyMap<string, KindName>,
  tasks: readonly Task[],
  killed: string | null,
): Account => {
  const found = new Map(tasks.map((task) => [task.id, task]))
  const kinds = KIND_NAMES.map((kind) => {
    const ids = [...submitted].filter(([, of]) => of === kind).map(([id]) => id)
    return accountOf(
      kind,
      ids.map((id) => found.get(id)),
    )
  })
  const accounted = kinds.reduce(
    (sum, { completed, dead, expired, cancelled }) => sum + completed + dead + expired + cancelled,
    0,
  )
  const orphans = killed === null ? [] : tasks.flatMap((task) => orphansOf(task, killed))
  const strangers = tasks.filter(({ id }) => !submitted.has(id)).length
  const isComplete = accounted === submitted.size && strangers === 0 && orphans.every(isLookedAfter)
  return { kinds, submitted: submitted.size, accounted, orphans, isComplete }
}

const accountOf = (kind: KindName, tasks: readonly (Task | undefined)[]): KindAccount => {
  const count = (status: string): number => tasks.filter((task) => task?.status === status).length
  const sum = (field: 'attempts' | 'retryCount' | 'rescheduleCount'): number =>
    tasks.reduce((so, task) => so + (task?.[field] ?? 0), 0)
  const ended = {
    completed: count('completed'),
    dead: count('failed'),
    expired: count('expired'),
    cancelled: count('cancelled'),
  }
  return {
    kind,
    submitted: tasks.length,
    ...ended,
    missing: tasks.length - ended.completed - ended.dead - ended.expired - ended.cancelled,
    attempts: sum('attempts'),
    retries: sum('retryCount'),
    reschedules: sum('rescheduleCount'),
  }
}

/** The position in a history where a lapsed lease of `worker` was found, or null. */
export const lostLease = (history: readonly HistoryEntry[], worker: string): number | null => {
  const at = history.findIndex(({ move }, i) => move === 'lose-lease' && history[i - 1]?.by === worker)
  return at < 0 ? null : at
}

const orphansOf = ({ id, type, status, attempts, history }: Task, killed: string): Orphan[] => {
  const lost = lostLease(history, killed)
  if (lost === null) return []
  const next = history.slice(lost + 1).find(({ move }) => move === 'claim')
  return [{ id, kind: type, foundBy: history[lost]!.by, ranAgainOn: next?.by ?? null, status, attempts }]
}

/** It ran again, unless the lost lease used the last retry of a poison task. */
const isLookedAfter = ({ ranAgainOn, status }: Orphan): boolean => ranAgainOn !== null || status === 'failed'
