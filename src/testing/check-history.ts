/** Checks the histories of tasks for violations of the guarantees, in memory. Works with any store; `verify` does the same for a whole store. */
import { isTerminal } from '../core/task.ts'
import { type CheckedTask, checkRecord } from './verify/history-rules.ts'
import { Ledger, sentenceOf, type Violation } from './verify/ledger.ts'
import { checkFences, checkRepeats, lastRunOf } from './verify/run-rules.ts'

export type { CheckedTask } from './verify/history-rules.ts'

/** One call of a handler, recorded by the handler itself, so that the store is not the only evidence. */
export interface Start {
  readonly id: string
  readonly fence: number
}

/** What is known about the tasks of a store after a test of faults. */
export interface Evidence {
  readonly tasks: readonly CheckedTask[]
  /** Ids whose submit resolved: each must exist. */
  readonly submitted?: readonly string[]
  /** Ids whose submit had an unclear outcome: each may exist. With `submitted`, no other task may exist. */
  readonly unclear?: readonly string[]
  /** Ids that the test removed. */
  readonly removed?: readonly string[]
  readonly starts?: readonly Start[]
  /** All faults are over and the queue is drained: no task may be pending or running. */
  readonly drained?: boolean
  /** The maximum clock difference, in milliseconds. */
  readonly clockBound?: number
}

/** Returns each violation as a sentence; empty if there are none. */
export const checkHistory = (evidence: Evidence): string[] => violationsOf(evidence).map(sentenceOf)

/** The same, by the numbers of the invariants. */
export const violationsOf = (evidence: Evidence): readonly Violation[] => {
  const { tasks, starts = [], clockBound = 0 } = evidence
  const ledger = new Ledger()
  for (const task of tasks) {
    checkRecord(task, clockBound, ledger)
    if (evidence.drained && !isTerminal(task.status))
      ledger.violate('I1', task.id, `is ${task.status} though everything was drained`)
  }
  checkPresence(evidence, ledger)
  checkTokens(tasks, ledger)
  checkKeys(tasks, ledger)
  if (starts.length > 0) checkStarts(tasks, starts, ledger)
  return ledger.found
}

const checkPresence = ({ tasks, submitted, unclear = [], removed = [] }: Evidence, ledger: Ledger): void => {
  if (submitted === undefined) return
  const there = new Set(tasks.map(({ id }) => id))
  const gone = new Set(removed)
  for (const id of submitted) if (!there.has(id) && !gone.has(id)) ledger.violate('I1', id, 'was submitted and is lost')
  const expected = new Set([...submitted, ...unclear])
  for (const id of there) if (!expected.has(id)) ledger.violate('I1b', id, 'was never submitted')
}

const checkTokens = (tasks: readonly CheckedTask[], ledger: Ledger): void => {
  const seen = new Map<string, string>()
  for (const { id, history } of tasks) {
    for (const { move, op } of history) {
      if (move !== 'claim') continue
      const other = seen.get(op)
      if (other !== undefined) ledger.violate('I3', id, `its lease token ${op} was also given for ${other}`)
      seen.set(op, id)
    }
  }
}

const checkKeys = (tasks: readonly CheckedTask[], ledger: Ledger): void => {
  const holders = new Map<string, string>()
  for (const { id, idempotencyKey } of tasks) {
    // A coalesce key passes on from task to task.
    if (idempotencyKey === null || idempotencyKey.startsWith('coalesce:')) continue
    const other = holders.get(idempotencyKey)
    if (other !== undefined) ledger.violate('I6', id, `its idempotency key is also that of ${other}`)
    holders.set(idempotencyKey, id)
  }
}

/** Every run has its own claim, a completed task ran under the lease that completed it, and every repeat is explained. */
const checkStarts = (tasks: readonly CheckedTask[], starts: readonly Start[], ledger: Ledger): void => {
  const byTask = Map.groupBy(starts, ({ id }) => id)
  for (const task of tasks) {
    const fences = (byTask.get(task.id) ?? []).map(({ fence }) => fence)
    checkFences(task, fences, ledger)
    if (lastRunOf(task)?.end === 'complete' && !fences.includes(task.attempts))
      ledger.violate('I11', task.id, 'is completed, but its last run was not recorded')
    checkRepeats(task, fences, ledger)
  }
}
