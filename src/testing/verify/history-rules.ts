/** Rules for the record and the history of one task, independent of the store that wrote them. */
import { isLegal, MOVES, type MoveName, RUN_ENDS } from '../../core/machine.ts'
import { FENCE_LEAP } from '../../core/storage/restore.ts'
import { HISTORY_KEPT, type HistoryEntry, isTerminal, type TaskRecord, type TaskStatus } from '../../core/task.ts'
import type { Invariant } from './invariants.ts'
import type { Ledger } from './ledger.ts'

/** A TaskRecord with its history, or a Task of the client. */
export type CheckedTask = Pick<
  TaskRecord,
  | 'id'
  | 'status'
  | 'attempts'
  | 'retryCount'
  | 'maxRetries'
  | 'rescheduleCount'
  | 'maxReschedules'
  | 'replayCount'
  | 'revision'
  | 'lease'
  | 'idempotencyKey'
  | 'createdAt'
  | 'history'
> & {
  readonly generation?: number
  /** Of a TaskRecord. */
  readonly hasJournal?: boolean
  /** Of a Task. */
  readonly steps?: readonly unknown[]
  readonly signals?: readonly unknown[]
}

export const checkRecord = (task: CheckedTask, clockBound: number, ledger: Ledger): void => {
  const say: Say = (invariant, what) => ledger.violate(invariant, task.id, what)
  ledger.check('I8', task.history.length)
  ledger.check('I2', task.history.filter(({ move }) => move === 'claim').length)
  ledger.check('I3', task.history.filter(({ move }) => RUN_ENDS.has(move)).length)
  if (isTerminal(task.status)) ledger.check('I5')
  checkLine(task, say)
  checkLeases(task, say)
  checkBudget(task, ledger, say)
  checkTimes(task, clockBound, ledger, say)
}

type Say = (invariant: Invariant, what: string) => void

/** True if no entry was dropped. */
export const isWhole = (task: Pick<CheckedTask, 'history' | 'revision'>): boolean =>
  task.history.length < HISTORY_KEPT || task.history.length === task.revision

/** Steps and signals raise the revision without an entry in the history. */
const hasGaps = ({ generation = 0, hasJournal = false, steps = [], signals = [] }: CheckedTask): boolean =>
  hasJournal || generation > 0 || steps.length + signals.length > 0

/** Entries are numbered without unexplained gaps (steps and signals explain some), each move is legal, each operation appears once, and the last entry matches the record. */
const checkLine = (task: CheckedTask, say: Say): void => {
  const { history, revision, status } = task
  const follows = hasGaps(task)
    ? (n: number, before: number): boolean => n > before
    : (n: number, before: number): boolean => n === before + 1
  const ops = new Set<string>()
  let before: { n: number; to: TaskStatus } | null = null
  for (const [i, entry] of history.entries()) {
    const isAfterCut = i === 1 && history.length === HISTORY_KEPT
    if (i === 0 ? entry.n !== 1 || entry.move !== 'submit' : !isAfterCut && !follows(entry.n, before!.n))
      say('I8', `entry ${i} is number ${entry.n} after ${before?.n ?? 'nothing'}`)
    if (before !== null && !isAfterCut) checkMove(entry, before.to, say)
    const operation = `${entry.op} ${entry.move}`
    if (ops.has(operation)) say('I8', `operation ${operation} appears twice`)
    ops.add(operation)
    before = entry
  }
  if (before === null || (before.n !== revision && !(hasGaps(task) && before.n < revision)))
    say('I8', `its last entry is number ${before?.n ?? 0}, its revision ${revision}`)
  if (before !== null && before.to !== status) say('I8', `its last entry leads to ${before.to}, but it is ${status}`)
}

const checkMove = ({ move, to }: HistoryEntry, from: TaskStatus, say: Say): void => {
  if (Object.hasOwn(MOVES, move) && isLegal(move as MoveName, from, to)) return
  say(isTerminal(from) ? 'I5' : move === 'claim' ? 'I2' : 'I8', `${move} from ${from} to ${to} is not a legal move`)
}

/** One lease at a time: the move that ends a run names the lease of that run. */
const checkLeases = (task: CheckedTask, say: Say): void => {
  let token: string | null = null
  let isKnown = isWhole(task)
  let claims = 0
  for (const { n, move, op } of task.history) {
    if (move === 'claim') {
      if (isKnown && token !== null) say('I2', `was claimed at ${n} under a lease that had not ended`)
      token = op
      isKnown = true
      claims++
    } else if ((RUN_ENDS.has(move) || move === 'retry') && isKnown && token !== null) {
      if (move !== 'retry' && op !== token)
        say('I3', `${move} at ${n} was written under ${op}, but ${token} held the lease`)
      token = null
    }
  }
  // A restored store that was accepted has raised the fence once or more.
  if (isWhole(task) && (task.attempts < claims || (task.attempts - claims) % FENCE_LEAP !== 0))
    say('I3', `was claimed ${claims} times, but its fence is ${task.attempts}`)
  if ((task.status === 'running') !== (task.lease !== null))
    say('I8', `is ${task.status} with ${task.lease === null ? 'no' : 'a'} lease`)
  if (task.lease !== null && task.lease.token !== token)
    say('I3', 'is held under a token that its last claim did not give')
}

const COSTS_A_RETRY: ReadonlySet<string> = new Set<MoveName>(['fail', 'lose-lease', 'time-out', 'retry'])
const COSTS_NOTHING: ReadonlySet<string> = new Set<MoveName>(['release', 'park'])

/** Within one replay there are no more retries than allowed, and no more runs than retries and reschedules explain. */
const checkBudget = (task: CheckedTask, ledger: Ledger, say: Say): void => {
  if (task.maxRetries !== null && task.retryCount > task.maxRetries)
    say('I4', `has used ${task.retryCount} retries of ${task.maxRetries}`)
  if (task.maxReschedules !== null && task.rescheduleCount > task.maxReschedules)
    say('I4', `has been rescheduled ${task.rescheduleCount} times of ${task.maxReschedules}`)
  if (!isWhole(task)) return
  ledger.check('I4')
  let [claims, retries, reschedules, free] = [0, 0, 0, 0]
  let from: TaskStatus = 'pending'
  for (const { move, to } of task.history) {
    if (move === 'replay') [claims, retries, reschedules, free] = [0, 0, 0, 0]
    else if (move === 'claim') claims++
    else if (to === 'pending' && move === 'retry' && from === 'cancelled') free++
    else if (to === 'pending' && COSTS_A_RETRY.has(move)) retries++
    else if (to === 'pending' && move === 'reschedule') reschedules++
    else if (to === 'pending' && COSTS_NOTHING.has(move)) free++
    from = to
  }
  if (retries !== task.retryCount) say('I4', `its history grants ${retries} retries, its count says ${task.retryCount}`)
  if (reschedules !== task.rescheduleCount)
    say('I4', `its history has ${reschedules} reschedules, its count says ${task.rescheduleCount}`)
  if (claims > 1 + retries + reschedules + free)
    say(
      'I4',
      `was run ${claims} times, which ${retries} retries, ${reschedules} reschedules and ${free} releases and parks do not explain`,
    )
}

/** Never claimed before it was due, nor after its expiry. */
const checkTimes = (task: CheckedTask, bound: number, ledger: Ledger, say: Say): void => {
  if (!isWhole(task)) return
  let availableAt = task.createdAt
  let expiresAt = Number.POSITIVE_INFINITY
  let before = 0
  for (const { n, at, move, ...facts } of task.history) {
    // A step has cleared its expiry, or a signal has made it due.
    if (n > before + 1) [availableAt, expiresAt] = [task.createdAt, Number.POSITIVE_INFINITY]
    before = n
    if (move === 'park') expiresAt = Number.POSITIVE_INFINITY
    if (move === 'replay') expiresAt = Number.POSITIVE_INFINITY
    availableAt = facts.availableAt ?? availableAt
    expiresAt = facts.expiresAt ?? (facts.changed?.includes('expiresAt') ? Number.POSITIVE_INFINITY : expiresAt)
    if (move !== 'claim') continue
    ledger.check('I7')
    if (at < availableAt - bound) say('I7', `was claimed at entry ${n}, ${availableAt - at} ms before it was due`)
    if (at >= expiresAt + bound) say('I7', `was claimed at entry ${n}, ${at - expiresAt} ms after it had expired`)
  }
}
