/** The moves of durable steps: record what a handler did, park it while it waits, and keep the signals that are sent to it. */
import { HoldfastError } from '../errors.ts'
import { cancelRun, holderActor, holding, TO_PENDING } from '../machine.ts'
import { type Actor, move } from '../moves.ts'
import {
  type Change,
  type ChangeSet,
  type Holder,
  type Instant,
  isTerminal,
  type JournalEntry,
  type Parked,
  type TaskRecord,
} from '../task.ts'
import { hasDeparted, MOVED_TAG } from '../transfer/transfer.ts'
import { atMostLast, LAST_INSTANT } from '../values/instants.ts'
import type { Payload } from '../values/payload.ts'
import { type Journal, readJournal, type StepState, stepState, valueFields } from './journal.ts'

const MOST_STEPS = 1_000
const MOST_SIGNALS = 1_000
/** The results of all steps of a task may together be this many times as large as one payload. The same holds for its waiting signals. */
const PAYLOADS = 4

type NewEntry = Omit<JournalEntry, 'n' | 'at' | 'op'>

const entriesAt = (task: TaskRecord, added: readonly NewEntry[], at: Instant, op: string): readonly JournalEntry[] =>
  added.map((entry, i) => ({ n: task.journal.length + i, at, op, ...entry }))

/** A ttl says when the task must have started: the first step or park clears the expiry. */
const remembering = ({ hasJournal, expiresAt }: TaskRecord): ChangeSet => ({
  ...(hasJournal ? null : { hasJournal: true }),
  ...(expiresAt === null ? null : { expiresAt: null }),
})

/** The size of all results. A signal that a step has taken counts as the result of that step. */
const sizeOfResults = ({ steps }: Journal): number => {
  let size = 0
  for (const state of steps.values()) {
    if (state.kind === 'step') size += state.entry.value?.length ?? 0
    else if (state.kind === 'taken') size += state.signal.value?.length ?? 0
  }
  return size
}

const sizeOf = (entries: readonly (JournalEntry | NewEntry)[]): number => {
  let size = 0
  for (const { value } of entries) size += value?.length ?? 0
  return size
}

// ── step ─────────────────────────────────────────────────────────────────────────────────────────────────────────

export interface StepResult {
  readonly name: string
  /** null: undefined. */
  readonly value: Payload | null
}

export interface StepFacts {
  readonly now: Instant
  /** The limit of one payload in bytes. */
  readonly maxPayload: number
}

/** Returns null if all of them are recorded already, by an earlier try. `task` must have its journal. */
export const recordSteps = (
  task: TaskRecord,
  holder: Holder,
  results: readonly StepResult[],
  { now, maxPayload }: StepFacts,
): Change | null => {
  const lease = holding(task, holder)
  const added = results
    .filter(({ name }) => stepState(task.journal, name) === undefined)
    .map(({ name, value }): NewEntry => ({ kind: 'step', name, ...valueFields(value) }))
  if (added.length === 0) return null
  const size = sizeOf(added)
  // Most tasks are far below the limits, and then the journal need not be read as a whole for each of its steps.
  if (task.journal.length + added.length > MOST_STEPS || sizeOf(task.journal) + size > PAYLOADS * maxPayload)
    mustFit(task.id, readJournal(task.journal), added.length, size, maxPayload)
  return stepMove(task, holderActor(lease, now), added)
}

const stepMove = (task: TaskRecord, actor: Actor, added: readonly NewEntry[]): Change => ({
  ...move(task, 'step', 'running', actor, remembering(task)),
  journal: entriesAt(task, added, actor.now, actor.op),
})

/** `more` are steps that the task does not have yet, `text` is their size. */
const mustFit = (id: string, journal: Journal, more: number, text: number, maxPayload: number): void => {
  if (more > 0 && journal.steps.size + more > MOST_STEPS)
    throw new HoldfastError('STEPS_TOO_LARGE', `task ${id} has more than ${MOST_STEPS} steps`, { id })
  const limit = PAYLOADS * maxPayload
  const size = text === 0 ? 0 : sizeOfResults(journal) + text
  if (size > limit)
    throw new HoldfastError(
      'STEPS_TOO_LARGE',
      `the results of the steps of task ${id} are ${size} characters; the limit is ${limit}`,
      { id, size, limit },
    )
}

// ── park ─────────────────────────────────────────────────────────────────────────────────────────────────────────

/** A sleep, or a wait for a signal, that a handler awaits. */
export interface Wait {
  readonly name: string
  /** The name of the signal; null: it sleeps. */
  readonly signal: string | null
  /** When the wait ends. Used only the first time it waits; later runs use the recorded instant. null: it waits forever. */
  readonly until: Instant | null
}

export interface WaitFacts {
  readonly now: Instant
  /** The limit of one payload in bytes. */
  readonly maxPayload: number
  /** Why the schema of the wait refuses the signal; null if it accepts it. */
  refusal(wait: Wait, signal: JournalEntry): string | null
}

export type WaitsSettled =
  /** Some waits are over. `change` is null if there is nothing to write. */
  { readonly kind: 'over'; readonly change: Change | null } | { readonly kind: 'parked'; readonly change: Change }

/** The signals that these waits would take now. Each wait takes one, in order. */
export const signalsFor = ({ steps, untaken }: Journal, waits: readonly Wait[]): ReadonlyMap<Wait, JournalEntry> => {
  const left = [...untaken]
  const found = new Map<Wait, JournalEntry>()
  for (const wait of waits) {
    if (wait.signal === null || isEnded(steps.get(wait.name))) continue
    const at = left.findIndex(({ name }) => name === wait.signal)
    if (at !== -1) found.set(wait, left.splice(at, 1)[0]!)
  }
  return found
}

const isEnded = (state: StepState | undefined): boolean => state?.kind === 'taken' || state?.kind === 'timed-out'

/**
 * Decides whether a handler that waits for all of these continues. It does if one wait is over; otherwise the task is parked until the earliest
 * instant. `task` must have its journal.
 */
export const settleWaits = (
  task: TaskRecord,
  holder: Holder,
  waits: readonly Wait[],
  facts: WaitFacts,
): WaitsSettled => {
  const lease = holding(task, holder)
  // The claim proves that the store's clock had reached the wake instant, whatever this process estimates.
  const now = Math.max(facts.now, lease.claimedAt)
  const actor = holderActor(lease, now)
  const journal = readJournal(task.journal)
  const signals = signalsFor(journal, waits)
  const ended: NewEntry[] = []
  const begun: NewEntry[] = []
  const open: Parked[] = []
  let isOver = false
  let [more, text] = [0, 0]
  for (const wait of waits) {
    const { name } = wait
    const state = journal.steps.get(name)
    const signal = signals.get(wait)
    const until = state?.kind === 'sleep' || state?.kind === 'wait' ? state.until : wait.until
    if (isEnded(state)) isOver = true
    else if (signal !== undefined) {
      const error = facts.refusal(wait, signal)
      if (state === undefined) more++
      text += sizeOf([signal])
      ended.push({ kind: 'take', name, signalId: signal.signalId!, ...(error === null ? null : { error }) })
    } else if (until !== null && until <= now) {
      isOver = true
      if (wait.signal !== null) ended.push({ kind: 'timeout', name })
    } else {
      if (state === undefined) begun.push(beginning(wait))
      open.push({
        step: name,
        ...(wait.signal === null ? { kind: 'sleep' } : { kind: 'signal', signal: wait.signal }),
        until,
      })
    }
  }
  if (ended.length > 0) {
    mustFit(task.id, journal, more, text, facts.maxPayload)
    return { kind: 'over', change: stepMove(task, actor, ended) }
  }
  if (isOver) return { kind: 'over', change: null }
  return { kind: 'parked', change: park(task, actor, open, begun, journal) }
}

const beginning = ({ name, signal, until }: Wait): NewEntry =>
  signal === null ? { kind: 'sleep', name, until } : { kind: 'wait', name, signal, until }

const park = (
  task: TaskRecord,
  actor: Actor,
  open: readonly Parked[],
  begun: readonly NewEntry[],
  journal: Journal,
): Change => {
  if (task.cancelRequestedAt !== null) return cancelRun(task, 'park', actor)
  mustFit(task.id, journal, begun.length, 0, Number.POSITIVE_INFINITY)
  const first = open.reduce((one, other) => ((other.until ?? LAST_INSTANT) < (one.until ?? LAST_INSTANT) ? other : one))
  const also = [...new Set(open.flatMap(({ signal }) => (signal === undefined ? [] : [signal])))]
  const parked: Parked = also.length > (first.signal === undefined ? 0 : 1) ? { ...first, signals: also } : first
  const availableAt = first.until === null ? LAST_INSTANT : atMostLast(first.until)
  return {
    ...move(
      task,
      'park',
      'pending',
      actor,
      { ...TO_PENDING, ...remembering(task), availableAt, parked },
      { step: first.step, ...(first.until === null ? null : { availableAt }) },
    ),
    ...(begun.length === 0 ? null : { journal: entriesAt(task, begun, actor.now, actor.op) }),
  }
}

// ── signal ───────────────────────────────────────────────────────────────────────────────────────────────────────

export interface Signal {
  /** A signal with a known id is not stored again. */
  readonly id: string
  readonly name: string
  readonly value: Payload | null
}

const isAwaited = ({ parked }: TaskRecord, name: string): boolean =>
  parked !== null && (parked.signal === name || (parked.signals ?? []).includes(name))

/** Returns null if the task has this signal already. `task` must have its journal. */
export const signal = (
  task: TaskRecord,
  { id, name, value }: Signal,
  actor: Actor,
  maxPayload: number,
): Change | null => {
  // Checked before the status: the task may have ended after a first try whose reply was lost.
  if (task.journal.some((entry) => entry.kind === 'signal' && entry.signalId === id)) return null
  mustBeLive(task)
  const { untaken } = readJournal(task.journal)
  const added: NewEntry = { kind: 'signal', name, signalId: id, by: actor.by, ...valueFields(value) }
  if (untaken.length >= MOST_SIGNALS || sizeOf(untaken) + sizeOf([added]) > PAYLOADS * maxPayload)
    throw new HoldfastError(
      'TOO_MANY_SIGNALS',
      `task ${task.id} has ${untaken.length} signals that no step has taken; this one was not kept`,
      { id: task.id, signals: untaken.length },
    )
  const wakes = isAwaited(task, name)
  const waits: ChangeSet = wakes ? { availableAt: actor.now } : task.parked === null ? {} : { parked: task.parked }
  return {
    ...move(task, 'signal', task.status, actor, { ...(task.hasJournal ? null : { hasJournal: true }), ...waits }),
    journal: entriesAt(task, [added], actor.now, actor.op),
  }
}

const mustBeLive = (task: TaskRecord): void => {
  const { id, status } = task
  if (hasDeparted(task))
    throw new HoldfastError(
      'TASK_MOVED',
      `task ${id} was moved to ${task.tags?.[MOVED_TAG] ?? 'another store'}: signal it there`,
      { id, status },
    )
  if (isTerminal(status))
    throw new HoldfastError('TASK_ENDED', `task ${id} is ${status}; it takes no signals`, { id, status })
}

// ── wake ─────────────────────────────────────────────────────────────────────────────────────────────────────────

/** Ends the sleep of a parked task. */
export const wake = (task: TaskRecord, actor: Actor): Change => {
  const { parked, id } = task
  if (parked?.kind !== 'sleep')
    throw new HoldfastError(
      'CANNOT_AMEND',
      `task ${id} waits for signal '${parked?.signal}' in step '${parked?.step}': send the signal instead`,
      { id, status: task.status },
    )
  const { now, op, by } = actor
  return {
    ...move(task, 'amend', 'pending', actor, { availableAt: now }, { changed: ['availableAt'], availableAt: now }),
    journal: entriesAt(task, [{ kind: 'wake', name: parked.step, by }], now, op),
  }
}
