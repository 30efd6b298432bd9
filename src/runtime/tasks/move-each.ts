/** Applies one decision to many tasks: all in one write, then the tasks which that write missed one by one. */
import { HoldfastError } from '../../core/errors.ts'
import type { MoveName } from '../../core/machine.ts'
import { Task } from '../../core/observe/task-view.ts'
import { applyChange, type Change, type TaskRecord } from '../../core/task.ts'
import type { Session } from '../session.ts'
import { settleById } from './settle.ts'

/** The result for one of many tasks. */
export type EachResult =
  | { readonly id: string; readonly task: Task }
  | { readonly id: string; readonly error: HoldfastError }

export interface EachDecision {
  /** One id for all tasks. In a history it distinguishes a retry from a second call. */
  readonly op: string
  /** The moves by which this operation is recognised in a history. */
  readonly moves: readonly MoveName[]
  /** Returns null if nothing is left to do. `seen` is the task as selected, which may have moved since. */
  decide(task: TaskRecord, seen: TaskRecord): Change | null
}

/** One result per task, in order. The tasks may be passed without their histories. */
export const moveEach = async (
  session: Session,
  tasks: readonly TaskRecord[],
  { op, moves, decide }: EachDecision,
): Promise<EachResult[]> => {
  await session.time.freshen()
  const decided = tasks.map((task) => ({ task, result: tryTo(task.id, () => decide(task, task)) }))
  const changes = decided.flatMap(({ result }) => ('value' in result && result.value !== null ? [result.value] : []))
  const isWritten = await commitTogether(session, changes)
  const results: EachResult[] = []
  for (const { task, result } of decided) {
    if ('error' in result) results.push(result)
    else if (result.value !== null && isWritten.has(task.id)) {
      session.events.moved(task, result.value)
      results.push({ id: task.id, task: new Task(after(task, result.value)) })
    } else {
      const decision = { op, moves, decide: (fresh: TaskRecord) => decide(fresh, task) }
      results.push(await each(task.id, async () => new Task(await settleById(session, task.id, decision))))
    }
  }
  return results
}

/** Returns the ids that the store reported as written. All others must be read again. */
const commitTogether = async ({ store }: Session, changes: readonly Change[]): Promise<ReadonlySet<string>> => {
  if (changes.length === 0) return new Set()
  try {
    const committed = await store.commit(changes)
    return new Set(changes.filter((_, i) => committed[i] === 'written').map(({ id }) => id))
  } catch {
    // Contact was lost, or the store refused one of them: each is tried separately.
    return new Set()
  }
}

/** A record that had no history gets none, rather than a partial one. */
const after = (task: TaskRecord, change: Change): TaskRecord =>
  task.history.length === 0 ? { ...applyChange(task, change), history: [] } : applyChange(task, change)

/** A refusal becomes the result of that task. Any other error fails the whole call. */
export const each = async (id: string, move: () => Promise<Task>): Promise<EachResult> => {
  try {
    return { id, task: await move() }
  } catch (error) {
    if (error instanceof HoldfastError) return { id, error }
    throw error
  }
}

const tryTo = <T>(
  id: string,
  decide: () => T,
): { readonly value: T } | { readonly id: string; error: HoldfastError } => {
  try {
    return { value: decide() }
  } catch (error) {
    if (error instanceof HoldfastError) return { id, error }
    throw error
  }
}
