/** One decision about many tasks: all in one write; what that does not settle, one by one. */
import { HoldfastError } from '../../core/errors.ts'
import type { MoveName } from '../../core/machine.ts'
import { applyChange, type Change, type TaskRecord } from '../../core/task.ts'
import { Task } from '../../core/task-view.ts'
import type { Session } from '../session.ts'
import { settleById } from './settle.ts'

/** How one of many went. */
export type EachResult =
  | { readonly id: string; readonly task: Task }
  | { readonly id: string; readonly error: HoldfastError }

export interface EachDecision {
  /** One for all of them: in a history it tells a repeat from a second call. */
  readonly op: string
  /** Which moves count as this one. */
  readonly moves: readonly MoveName[]
  /** null: nothing is left to do. `seen` is the task as it was chosen, which may have moved since. */
  decide(task: TaskRecord, seen: TaskRecord): Change | null
}

/** A result for each, in order. The tasks may come without their histories. */
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

/** Those of which the store said that they are written: all others must be read again. */
const commitTogether = async ({ store }: Session, changes: readonly Change[]): Promise<ReadonlySet<string>> => {
  if (changes.length === 0) return new Set()
  try {
    const committed = await store.commit(changes)
    return new Set(changes.filter((_, i) => committed[i] === 'written').map(({ id }) => id))
  } catch {
    // Contact was lost, or one of them was too much for the store: each finds out for itself.
    return new Set()
  }
}

/** What came without a history has none afterwards, rather than a part of one. */
const after = (task: TaskRecord, change: Change): TaskRecord =>
  task.history.length === 0 ? { ...applyChange(task, change), history: [] } : applyChange(task, change)

/** What is refused is that one's own result; a fault is everybody's. */
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
