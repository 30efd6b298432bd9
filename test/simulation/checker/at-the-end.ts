/** What can only be checked when all faults are over and the queues are drained. */
import { RUN_ENDS } from '../../../src/core/machine.ts'
import { HISTORY_KEPT, isTerminal, type TaskRecord } from '../../../src/core/task.ts'
import { violationsOf } from '../../../src/testing/check-history.ts'
import type { Checker } from './checker.ts'
import type { Start } from './witness.ts'

export interface End {
  readonly checker: Checker
  /** As the store holds them now. */
  readonly tasks: readonly TaskRecord[]
  /** Tasks that schedules, handlers and operators made may exist without a caller of the witness. */
  readonly mayExist: (task: TaskRecord) => boolean
  readonly poisonType: string
  /** Somebody removed it. */
  readonly isRemoved: (id: string) => boolean
}

export const checkEnd = (end: End): void => {
  checkPresence(end)
  checkKeys(end)
  for (const task of end.tasks) {
    const starts = end.checker.witness.starts.get(task.id) ?? []
    checkStarts(end, task, starts)
    checkInputs(end, task, starts)
  }
  end.checker.steps.checkSent(end.checker, end.tasks)
  // The checker that users have must agree.
  for (const { invariant, task, what } of violationsOf({ tasks: end.tasks, drained: false }))
    end.checker.violate(invariant, `checkHistory: task ${task}: ${what}`)
}

const checkPresence = ({ checker, tasks, mayExist, isRemoved }: End): void => {
  const { submits } = checker.witness
  const there = new Map(tasks.map((task) => [task.id, task]))
  for (const { outcome, given } of submits)
    if (outcome === 'ok' && given !== null && !there.has(given) && !isRemoved(given))
      checker.violate('I1', `task ${given} was accepted and is lost`, given)
  for (const id of checker.tasks.keys())
    if (!there.has(id) && !isRemoved(id)) checker.violate('I1', `task ${id} is gone, and nothing removed it`, id)
  const expected = new Set(submits.flatMap(({ id, given }) => [id, given]))
  for (const task of tasks) {
    if (!expected.has(task.id) && !mayExist(task))
      checker.violate('I1b', `task ${task.id} was never submitted`, task.id)
    if (!isTerminal(task.status)) checker.violate('I1', `task ${task.id} is ${task.status} after the drain`, task.id)
  }
}

/** Every accepted submission of a key was given the same task, unless an operator deleted it. */
const checkKeys = ({ checker }: End): void => {
  const byKey = new Map<string, string>()
  for (const { key, outcome, given, begunAt, coalesceKey } of checker.witness.submits) {
    if (outcome !== 'ok' || given === null) continue
    if (coalesceKey !== null) {
      const first = checker.witness.starts.get(given)?.[0]
      if (first !== undefined && first.at < begunAt)
        checker.violate('I6', `a trigger joined task ${given}, which had begun before it`, given)
    }
    if (key === null) continue
    const other = byKey.get(key)
    if (other !== undefined && other !== given && !checker.deleted.has(other))
      checker.violate('I6', `the key ${key} gave tasks ${other} and ${given}`, given)
    byKey.set(key, given)
  }
}

const isWhole = ({ history, revision }: TaskRecord): boolean =>
  history.length < HISTORY_KEPT || history.length === revision

const checkStarts = ({ checker, poisonType }: End, task: TaskRecord, starts: readonly Start[]): void => {
  const fences = starts.map(({ fence }) => fence)
  if (new Set(fences).size !== fences.length)
    checker.violate('I3', `task ${task.id} was begun twice under one fence (${fences.join(', ')})`, task.id)
  if (fences.some((fence) => fence > task.attempts))
    checker.violate('I3', `task ${task.id} was begun under a fence beyond its ${task.attempts} claims`, task.id)
  const returns = task.history.filter(
    ({ move, to }) => (RUN_ENDS.has(move) || move === 'retry' || move === 'replay') && to === 'pending',
  ).length
  if (isWhole(task) && fences.length - 1 > returns)
    checker.violate(
      'I12',
      `task ${task.id} was begun ${fences.length} times, which ${returns} returns do not explain`,
      task.id,
    )
  if (task.type !== poisonType) return
  // An operator may have completed it by hand.
  if (
    task.status === 'completed' &&
    !task.history.some(({ move, by }) => move === 'complete' && by.startsWith('hand-'))
  )
    checker.violate('I14', `task ${task.id} kills its worker, and is completed`, task.id)
  const allowed = ((task.maxRetries ?? Number.POSITIVE_INFINITY) + 1) * (task.replayCount + 1)
  // Only who held the lease can give it back.
  let holder: string | null = null
  let free = 0
  for (const { move, to, by } of task.history) {
    if (move === 'claim') holder = by
    else if (to === 'pending' && (move === 'retry' || (move === 'release' && by === holder))) free++
  }
  if (isWhole(task) && fences.length > allowed + free)
    checker.violate('I14', `task ${task.id} killed ${fences.length} workers; its retries allow ${allowed}`, task.id)
}

const checkInputs = ({ checker }: End, { id }: TaskRecord, starts: readonly Start[]): void => {
  const allowed = checker.witness.inputs.get(id)
  if (allowed === undefined) return
  for (const { input, fence } of starts)
    if (!allowed.has(input)) checker.violate('I13', `run ${fence} of task ${id} saw the input ${input}`, id)
}
