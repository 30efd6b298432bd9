/** Reads the journal of a task: its steps, and the signals that wait. */
import { HoldfastError } from '../errors.ts'
import { isPlainText } from '../submission.ts'
import type { Instant, JournalEntry, TaskRecord } from '../task.ts'
import { decodePayload, type Payload } from '../values/payload.ts'

/** The recorded state of a step. */
export type StepState =
  | { readonly kind: 'step'; readonly entry: JournalEntry }
  /** `until`: when it is over, or was ended by `runNow`. */
  | { readonly kind: 'sleep'; readonly until: Instant }
  | { readonly kind: 'wait'; readonly signal: string; readonly until: Instant | null }
  | { readonly kind: 'taken'; readonly signal: JournalEntry; readonly error: string | null }
  | { readonly kind: 'timed-out' }

export interface Journal {
  readonly steps: ReadonlyMap<string, StepState>
  /** The signals that no step has taken, in the order in which they arrived. */
  readonly untaken: readonly JournalEntry[]
}

/** The first outcome of a step stands. */
export const readJournal = (entries: readonly JournalEntry[]): Journal => {
  const steps = new Map<string, StepState>()
  const signals = new Map<string, JournalEntry>()
  const untaken = new Map<string, JournalEntry>()
  for (const entry of entries) {
    if (entry.kind === 'signal') {
      signals.set(entry.signalId!, entry)
      untaken.set(entry.signalId!, entry)
      continue
    }
    const before = steps.get(entry.name)
    const state = stateAfter(before, entry, (id) => signals.get(id))
    if (state !== null) steps.set(entry.name, state)
    if (state?.kind === 'taken') untaken.delete(entry.signalId!)
  }
  return { steps, untaken: [...untaken.values()] }
}

/** One step of `readJournal`, without building the map of all: a run asks for each of its steps, and there may be a thousand. */
export const stepState = (entries: readonly JournalEntry[], step: string): StepState | undefined => {
  let state: StepState | undefined
  const signalOf = (id: string): JournalEntry | undefined =>
    entries.find(({ kind, signalId }) => kind === 'signal' && signalId === id)
  for (const entry of entries)
    if (entry.name === step && entry.kind !== 'signal') state = stateAfter(state, entry, signalOf) ?? state
  return state
}

/** null: the entry changes nothing. */
const stateAfter = (
  before: StepState | undefined,
  entry: JournalEntry,
  signalOf: (id: string) => JournalEntry | undefined,
): StepState | null => {
  switch (entry.kind) {
    case 'step':
      return before === undefined ? { kind: 'step', entry } : null
    case 'sleep':
      return before === undefined ? { kind: 'sleep', until: entry.until! } : null
    case 'wake':
      return before?.kind === 'sleep' && before.until > entry.at ? { kind: 'sleep', until: entry.at } : null
    case 'wait':
      return before === undefined ? { kind: 'wait', signal: entry.signal!, until: entry.until ?? null } : null
    case 'take': {
      const signal = signalOf(entry.signalId!)
      const isOpen = before === undefined || before.kind === 'wait'
      return isOpen && signal !== undefined ? { kind: 'taken', signal, error: entry.error ?? null } : null
    }
    case 'timeout':
      return before === undefined || before.kind === 'wait' ? { kind: 'timed-out' } : null
    case 'signal':
      return null
  }
}

/** The value of a step or a signal. */
export const recordedValue = ({ value, encoding }: JournalEntry): unknown =>
  value === undefined ? undefined : decodePayload(value, encoding ?? 'json')

/** The fields of an entry that hold this value; null: undefined. */
export const valueFields = (payload: Payload | null): Pick<JournalEntry, 'value' | 'encoding'> =>
  payload === null
    ? {}
    : { value: payload.text, ...(payload.encoding === 'json' ? null : { encoding: payload.encoding }) }

/** Whether the task has steps. True if the entries are not loaded, because there may be steps among them. */
export const hasSteps = ({ hasJournal, journal }: TaskRecord): boolean =>
  hasJournal && (journal.length === 0 || journal.some(({ kind }) => kind !== 'signal'))

/** The idempotency key of a step's effect in other systems: the same in every run, and a new one after a fresh replay. */
export const stepKey = ({ id, generation }: TaskRecord, name: string): string =>
  generation === 0 ? `${id}:${name}` : `${id}:${generation}:${name}`

export const checkStepName = (name: unknown, field = 'name'): string => {
  if (typeof name === 'string' && name !== '' && isPlainText(name, 128)) return name
  throw new HoldfastError('INVALID_OPTION', `${field} must be well-formed text of 1 to 128 characters without NUL`, {
    field,
  })
}

// ── for people ───────────────────────────────────────────────────────────────────────────────────────────────────

/** A step as an API shows it. */
export interface ShownStep {
  /** As the handler named it. */
  readonly name: string
  /** A step, a sleep, or the wait for a signal. */
  readonly kind: 'step' | 'sleep' | 'signal'
  /** What has become of it. */
  readonly status: 'done' | 'sleeping' | 'waiting' | 'timed-out' | 'refused'
  /** When it was recorded or began. */
  readonly at: Instant
  /** When a sleep or a wait ends at the latest; null: never. */
  readonly until?: Instant | null
  /** The name of the signal that it waits for or took. */
  readonly signal?: string
  /** The result of a step, or the value of a signal. */
  readonly value?: unknown
  /** Why the schema refused the signal. */
  readonly error?: string
}

/** A signal that no step has taken. */
export interface ShownSignal {
  /** Given by the sender, or made for it: a repeat with the same id is kept once. */
  readonly id: string
  /** What a step waits for. */
  readonly name: string
  /** When it was sent. */
  readonly at: Instant
  /** Who sent it. */
  readonly by?: string
  /** What was sent. */
  readonly value?: unknown
}

/** The steps in the order in which they began. A sleep is over if the task has moved since its wake instant. */
export const shownSteps = ({ journal: entries, updatedAt }: TaskRecord): readonly ShownStep[] => {
  if (entries.length === 0) return []
  const begun = new Map<string, JournalEntry>()
  const ended = new Map<string, JournalEntry>()
  for (const entry of entries) {
    if (entry.kind === 'signal') continue
    if (!begun.has(entry.name)) begun.set(entry.name, entry)
    ended.set(entry.name, entry)
  }
  const { steps } = readJournal(entries)
  return [...begun.values()].map((first) => shownStep(first, ended.get(first.name)!, steps.get(first.name)!, updatedAt))
}

const shownStep = (first: JournalEntry, last: JournalEntry, state: StepState, now: Instant): ShownStep => {
  const { name } = first
  switch (state.kind) {
    case 'step':
      return { name, kind: 'step', status: 'done', at: first.at, ...valueField(state.entry) }
    case 'sleep': {
      const { until } = state
      return { name, kind: 'sleep', status: until <= now ? 'done' : 'sleeping', at: first.at, until }
    }
    case 'wait':
      return { name, kind: 'signal', status: 'waiting', at: first.at, until: state.until, signal: state.signal }
    case 'taken': {
      const { signal, error } = state
      const taken = { name, kind: 'signal', at: last.at, signal: signal.name, ...valueField(signal) } as const
      return error === null ? { ...taken, status: 'done' } : { ...taken, status: 'refused', error }
    }
    case 'timed-out':
      return {
        name,
        kind: 'signal',
        status: 'timed-out',
        at: last.at,
        ...(first.signal === undefined ? null : { signal: first.signal }),
      }
  }
}

export const shownSignals = ({ journal }: TaskRecord): readonly ShownSignal[] =>
  readJournal(journal).untaken.map((entry) => ({
    id: entry.signalId!,
    name: entry.name,
    at: entry.at,
    ...(entry.by === undefined ? null : { by: entry.by }),
    ...valueField(entry),
  }))

const valueField = (entry: JournalEntry): { readonly value?: unknown } =>
  entry.value === undefined ? {} : { value: recordedValue(entry) }
