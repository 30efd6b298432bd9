/** Checks the histories of tasks for violations of the guarantees. Works with any store. */
import { isLegal, MOVES, type MoveName, RUN_ENDS } from '../core/machine.ts'
import { HISTORY_KEPT, type HistoryEntry, isTerminal, type TaskRecord, type TaskStatus } from '../core/task.ts'

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
>

/** One call of a handler, recorded by the handler itself, so that the store is not the only evidence. */
export interface Start {
  readonly id: string
  readonly fence: number
}

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
export const checkHistory = (evidence: Evidence): string[] => {
  const { tasks, starts = [], clockBound = 0 } = evidence
  const said: string[] = []
  for (const task of tasks) {
    const say = (what: string): void => void said.push(`task ${task.id}: ${what}`)
    checkLine(task, say)
    checkLeases(task, say)
    checkBudget(task, say)
    checkTimes(task, clockBound, say)
    if (evidence.drained && !isTerminal(task.status)) say(`is ${task.status} though everything was drained`)
  }
  checkPresence(evidence, said)
  checkTokens(tasks, said)
  checkKeys(tasks, said)
  if (starts.length > 0) checkStarts(tasks, starts, said)
  return said
}

type Say = (what: string) => void

const isWhole = (task: CheckedTask): boolean =>
  task.history.length < HISTORY_KEPT || task.history.length === task.revision

/** Entries are numbered without gaps, each move is legal, each operation appears once, and the last entry matches the record. */
const checkLine = ({ history, revision, status }: CheckedTask, say: Say): void => {
  const ops = new Set<string>()
  let before: { n: number; to: TaskStatus } | null = null
  for (const [i, entry] of history.entries()) {
    const isAfterCut = i === 1 && history.length === HISTORY_KEPT
    if (i === 0 ? entry.n !== 1 || entry.move !== 'submit' : !isAfterCut && entry.n !== before!.n + 1)
      say(`entry ${i} is number ${entry.n} after ${before?.n ?? 'nothing'}`)
    if (before !== null && !isAfterCut) checkMove(entry, before.to, say)
    const operation = `${entry.op} ${entry.move}`
    if (ops.has(operation)) say(`operation ${operation} appears twice`)
    ops.add(operation)
    before = entry
  }
  if (before?.n !== revision) say(`its last entry is number ${before?.n ?? 0}, its revision ${revision}`)
  if (before !== null && before.to !== status) say(`its last entry leads to ${before.to}, but it is ${status}`)
}

const checkMove = (entry: HistoryEntry, from: TaskStatus, say: Say): void => {
  if (!Object.hasOwn(MOVES, entry.move) || !isLegal(entry.move as MoveName, from, entry.to))
    say(`${entry.move} from ${from} to ${entry.to} is not a legal move`)
}

/** One lease at a time: the move that ends a run names the lease of that run. */
const checkLeases = (task: CheckedTask, say: Say): void => {
  let token: string | null = null
  let isKnown = isWhole(task)
  let claims = 0
  for (const { n, move, op } of task.history) {
    if (move === 'claim') {
      if (isKnown && token !== null) say(`was claimed at ${n} under a lease that had not ended`)
      token = op
      isKnown = true
      claims++
    } else if ((RUN_ENDS.has(move) || move === 'retry') && isKnown && token !== null) {
      if (move !== 'retry' && op !== token) say(`${move} at ${n} was written under ${op}, but ${token} held the lease`)
      token = null
    }
  }
  if (isWhole(task) && claims !== task.attempts) say(`was claimed ${claims} times, but its fence is ${task.attempts}`)
  if ((task.status === 'running') !== (task.lease !== null))
    say(`is ${task.status} with ${task.lease === null ? 'no' : 'a'} lease`)
  if (task.lease !== null && task.lease.token !== token) say('is held under a token that its last claim did not give')
}

const COSTS_A_RETRY: ReadonlySet<string> = new Set<MoveName>(['fail', 'lose-lease', 'time-out', 'retry'])
const COSTS_NOTHING: ReadonlySet<string> = new Set<MoveName>(['release'])

/** Within one replay: no more retries than allowed, no more runs than retries and reschedules explain. */
const checkBudget = (task: CheckedTask, say: Say): void => {
  if (task.maxRetries !== null && task.retryCount > task.maxRetries)
    say(`has used ${task.retryCount} retries of ${task.maxRetries}`)
  if (task.maxReschedules !== null && task.rescheduleCount > task.maxReschedules)
    say(`has been rescheduled ${task.rescheduleCount} times of ${task.maxReschedules}`)
  if (!isWhole(task)) return
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
  if (retries !== task.retryCount) say(`its history grants ${retries} retries, its count says ${task.retryCount}`)
  if (reschedules !== task.rescheduleCount)
    say(`its history has ${reschedules} reschedules, its count says ${task.rescheduleCount}`)
  if (claims > 1 + retries + reschedules + free)
    say(
      `was run ${claims} times, which ${retries} retries, ${reschedules} reschedules and ${free} releases do not explain`,
    )
}

/** Never claimed before it was due, nor after its expiry. */
const checkTimes = (task: CheckedTask, bound: number, say: Say): void => {
  if (!isWhole(task)) return
  let availableAt = task.createdAt
  let expiresAt = Number.POSITIVE_INFINITY
  for (const { n, at, move, ...facts } of task.history) {
    if (move === 'replay') expiresAt = Number.POSITIVE_INFINITY
    availableAt = facts.availableAt ?? availableAt
    expiresAt = facts.expiresAt ?? expiresAt
    if (move !== 'claim') continue
    if (at < availableAt - bound) say(`was claimed at entry ${n}, ${availableAt - at} ms before it was due`)
    if (at >= expiresAt + bound) say(`was claimed at entry ${n}, ${at - expiresAt} ms after it had expired`)
  }
}

const checkPresence = ({ tasks, submitted, unclear = [], removed = [] }: Evidence, said: string[]): void => {
  if (submitted === undefined) return
  const there = new Set(tasks.map(({ id }) => id))
  const gone = new Set(removed)
  for (const id of submitted) if (!there.has(id) && !gone.has(id)) said.push(`task ${id}: was submitted and is lost`)
  const expected = new Set([...submitted, ...unclear])
  for (const id of there) if (!expected.has(id)) said.push(`task ${id}: was never submitted`)
}

const checkTokens = (tasks: readonly CheckedTask[], said: string[]): void => {
  const seen = new Map<string, string>()
  for (const { id, history } of tasks) {
    for (const { move, op } of history) {
      if (move !== 'claim') continue
      const other = seen.get(op)
      if (other !== undefined) said.push(`task ${id}: its lease token ${op} was also given for ${other}`)
      seen.set(op, id)
    }
  }
}

const checkKeys = (tasks: readonly CheckedTask[], said: string[]): void => {
  const holders = new Map<string, string>()
  for (const { id, idempotencyKey } of tasks) {
    // A coalesce key passes on from task to task.
    if (idempotencyKey === null || idempotencyKey.startsWith('coalesce:')) continue
    const other = holders.get(idempotencyKey)
    if (other !== undefined) said.push(`task ${id}: its idempotency key is also that of ${other}`)
    holders.set(idempotencyKey, id)
  }
}

/** Every run has its own claim, a completed task ran under the lease that completed it, and every repeat is explained. */
const checkStarts = (tasks: readonly CheckedTask[], starts: readonly Start[], said: string[]): void => {
  const byTask = Map.groupBy(starts, ({ id }) => id)
  for (const task of tasks) {
    const fences = (byTask.get(task.id) ?? []).map(({ fence }) => fence)
    if (new Set(fences).size !== fences.length)
      said.push(`task ${task.id}: was begun twice under one fence (${fences.join(', ')})`)
    if (fences.some((fence) => fence > task.attempts))
      said.push(`task ${task.id}: was begun under a fence beyond its ${task.attempts} claims`)
    if (task.history.at(-1)?.move === 'complete' && !fences.includes(task.attempts))
      said.push(`task ${task.id}: is completed, but its last run was not recorded`)
    const ended = task.history.filter(
      ({ move, to }) => (RUN_ENDS.has(move) || move === 'retry') && to === 'pending',
    ).length
    if (isWhole(task) && fences.length - 1 > ended)
      said.push(`task ${task.id}: was begun ${fences.length} times, which ${ended} returns to pending do not explain`)
  }
}
