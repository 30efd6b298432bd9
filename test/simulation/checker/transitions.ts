/** What one write may do to a task: the rules that can be checked the moment it happens. */
import { isLegal, MOVES, type MoveName, RUN_ENDS } from '../../../src/core/machine.ts'
import { HISTORY_KEPT, type HistoryEntry, type Instant, isTerminal, type TaskRecord } from '../../../src/core/task.ts'
import { LAST_INSTANT } from '../../../src/core/values/instants.ts'
import type { Checker } from './checker.ts'
import type { Invariant } from './invariants.ts'
import { checkJournal, checkJournalOnly } from './journal.ts'

export interface Transition {
  readonly checker: Checker
  readonly before: TaskRecord | null
  readonly after: TaskRecord
  /** The store's clock. */
  readonly now: Instant
}

/** What a move may leave as it is; everything else needs an entry in the history. */
const WITHOUT_ENTRY: ReadonlySet<string> = new Set(['lease', 'progress', 'mark', 'history'])

export const checkTransition = (transition: Transition): void => {
  const { checker, before, after } = transition
  const say = (invariant: Invariant, what: string): void =>
    checker.violate(invariant, `task ${after.id}: ${what}`, after.id)
  if (before !== null && after.revision < before.revision)
    say('I8', `went back from revision ${before.revision} to ${after.revision}`)
  else if (before !== null && after.revision === before.revision) checkRenewal(before, after, say)
  else checkMoves(transition, say)
}

const checkMoves = (transition: Transition, say: Say): void => {
  const { checker, before, after } = transition
  let state: State =
    before === null
      ? { status: null, fence: 0, lease: null, availableAt: after.createdAt, expiresAt: null }
      : { status: before.status, fence: before.attempts, lease: before.lease, ...timesOf(before) }
  const fresh = after.history.filter(({ n }) => n > (before?.revision ?? 0))
  // Steps and signals have no entry in the history, but in the journal.
  const remembered = before === null ? after.journal : checkJournal(before, after, say)
  const silent = after.revision - (before?.revision ?? 0) - fresh.length
  if (silent < 0 || silent > remembered.length)
    say('I8', `${fresh.length} entries tell of ${after.revision - (before?.revision ?? 0)} moves`)
  if (silent > 0) checker.marks.hit('a step or a signal was kept')
  if (before !== null && fresh.length === 0) checkJournalOnly(before, after, say)
  if (before !== null) checkPast(before, after, say)
  for (const entry of fresh) state = checkEntry(transition, state, entry, say)
  if (state.status !== after.status) say('I8', `its last entry leads to ${state.status}, but it is ${after.status}`)
  if (state.fence !== after.attempts) say('I3', `its history has ${state.fence} claims, its fence is ${after.attempts}`)
  if ((after.status === 'running') !== (after.lease !== null))
    say('I8', `is ${after.status} with ${after.lease === null ? 'no' : 'a'} lease`)
  if (after.maxRetries !== null && after.retryCount > after.maxRetries)
    say('I4', `has used ${after.retryCount} retries of ${after.maxRetries}`)
  if (before !== null) checkCounts(before, after, fresh, say)
  if (after.lease !== null && after.lease.expiresAt < after.lease.claimedAt)
    say('I2', 'its lease ended before it began')
}

type Say = (invariant: Invariant, what: string) => void

interface State {
  /** null: there was no task. */
  readonly status: TaskRecord['status'] | null
  readonly fence: number
  readonly lease: { readonly token: string; readonly expiresAt: Instant | null } | null
  readonly availableAt: Instant
  readonly expiresAt: Instant | null
}

const timesOf = ({ availableAt, expiresAt }: TaskRecord): Pick<State, 'availableAt' | 'expiresAt'> => ({
  availableAt,
  expiresAt,
})

/** A renewal changes the lease's end and the progress, of a task that runs under the same lease. */
const checkRenewal = (before: TaskRecord, after: TaskRecord, say: Say): void => {
  if (before.lease?.token !== after.lease?.token) say('I3', 'its lease changed without a move')
  for (const name of Object.keys(after) as (keyof TaskRecord)[]) {
    if (WITHOUT_ENTRY.has(name)) continue
    if (JSON.stringify(before[name]) !== JSON.stringify(after[name])) say('I8', `its ${name} changed without a move`)
  }
  if (before.history.length !== after.history.length) say('I8', 'its history changed without a move')
}

/** What was written stays written. */
const checkPast = (before: TaskRecord, after: TaskRecord, say: Say): void => {
  const known = new Map(before.history.map((entry) => [entry.n, entry]))
  for (const entry of after.history) {
    const old = known.get(entry.n)
    if (old !== undefined && (old.op !== entry.op || old.move !== entry.move || old.at !== entry.at))
      say('I8', `entry ${entry.n} was rewritten`)
  }
  if (
    after.history.length < HISTORY_KEPT &&
    after.history.length !== after.revision &&
    !after.hasJournal &&
    after.generation === 0
  )
    say('I8', `has ${after.history.length} entries at revision ${after.revision}`)
}

const ENDS_BY_OTHERS: ReadonlySet<string> = new Set(['lose-lease', 'time-out'])

const checkEntry = (transition: Transition, state: State, entry: HistoryEntry, say: Say): State => {
  const { checker, after, now } = transition
  const { n, move, to, op, by } = entry
  const isFirst = state.status === null
  if (isFirst) {
    if (n === 1 && move !== 'submit') say('I8', `begins with ${move}`)
  } else if (!Object.hasOwn(MOVES, move) || !isLegal(move as MoveName, state.status, to)) {
    say(
      isTerminal(state.status) ? 'I5' : move === 'claim' ? 'I2' : 'I8',
      `${move} from ${state.status} to ${to} is not a legal move`,
    )
  }
  checker.marks.hit(`move ${move}`)
  const next = { ...state, status: to, ...timesAfter(state, entry) }
  if (move === 'claim') {
    const known = checker.tokens.get(op)
    if (known !== undefined) say('I3', `its lease token ${op} was also given for ${known}`)
    checker.tokens.set(op, after.id)
    const bound = checker.clockBound
    if (now < state.availableAt - bound) say('I7', `was claimed ${state.availableAt - now} ms before it was due`)
    if (state.expiresAt !== null && now >= state.expiresAt + bound + checker.lateBound)
      say('I7', `was claimed ${now - state.expiresAt} ms after it had expired`)
    const served = checker.served.get(by)
    if (served !== undefined && !(served.queues.includes(after.queue) && served.types.includes(after.type)))
      say('I16', `${by} claimed type ${after.type} of queue ${after.queue}, which it does not serve`)
    return { ...next, fence: state.fence + 1, lease: { token: op, expiresAt: after.lease?.expiresAt ?? null } }
  }
  if (RUN_ENDS.has(move) && state.lease !== null) {
    if (op !== state.lease.token) say('I3', `${move} was written under ${op}, but ${state.lease.token} held the lease`)
    const { expiresAt } = state.lease
    if (
      ENDS_BY_OTHERS.has(move) &&
      transition.before?.lease != null &&
      by !== transition.before.lease.workerId &&
      expiresAt !== null
    ) {
      checker.marks.hit('a lapsed lease was taken')
    }
    if (move === 'lose-lease' && expiresAt !== null && now < expiresAt - checker.clockBound)
      say('I2', `its lease was taken ${expiresAt - now} ms before it lapsed`)
  }
  if (move === 'complete') checkCompletion(transition, state, say)
  return to === 'running' ? next : { ...next, lease: null }
}

const timesAfter = (
  state: State,
  { move, availableAt, expiresAt }: HistoryEntry,
): Pick<State, 'availableAt' | 'expiresAt'> => ({
  availableAt: availableAt ?? (move === 'park' ? LAST_INSTANT : state.availableAt),
  // A ttl means "start by": a park ends it.
  expiresAt: expiresAt ?? (move === 'replay' || move === 'park' ? null : state.expiresAt),
})

/** The handler of this lease returned this output. Tasks that were completed by hand have no handler. */
const checkCompletion = ({ checker, after }: Transition, { fence }: State, say: Say): void => {
  const start = checker.witness.starts.get(after.id)?.find((one) => one.fence === fence)
  if (start === undefined) say('I11', `is completed under fence ${fence}, and no handler ran under it`)
  else if (start.output === undefined) say('I11', `is completed under fence ${fence}, whose handler did not return`)
  else if (after.output !== start.output)
    say('I11', `has the output ${after.output}, but its handler returned ${start.output}`)
}

const COSTS_A_RETRY: ReadonlySet<string> = new Set<MoveName>(['fail', 'lose-lease', 'time-out', 'retry'])

/** The counters say what the entries say. */
const checkCounts = (before: TaskRecord, after: TaskRecord, fresh: readonly HistoryEntry[], say: Say): void => {
  let [retries, reschedules, replays] = [before.retryCount, before.rescheduleCount, before.replayCount]
  let from = before.status
  for (const { move, to } of fresh) {
    if (move === 'archive' && after.replayedAs !== before.replayedAs) replays++
    else if (move === 'replay') [retries, reschedules, replays] = [0, 0, replays + 1]
    else if (to === 'pending' && COSTS_A_RETRY.has(move) && !(move === 'retry' && from === 'cancelled')) retries++
    else if (to === 'pending' && move === 'reschedule') reschedules++
    from = to
  }
  if (retries !== after.retryCount)
    say('I4', `its history grants ${retries} retries, its count says ${after.retryCount}`)
  if (reschedules !== after.rescheduleCount)
    say('I4', `its history has ${reschedules} reschedules, its count says ${after.rescheduleCount}`)
  if (replays !== after.replayCount)
    say('I4', `its history has ${replays} replays, its count says ${after.replayCount}`)
}
