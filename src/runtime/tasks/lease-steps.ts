/**
 * Durable steps of a task that is driven by hand, as over HTTP. The caller gets the outcome of each call and decides itself what to run: a task
 * that is parked is no longer its own. Every call may be repeated with the same lease.
 */

import { hasOp, holding } from '../../core/machine.ts'
import {
  checkStepName,
  recordedValue,
  type ShownStep,
  type StepState,
  shownSteps,
  stepKey,
  stepState,
} from '../../core/steps/journal.ts'
import { mismatch, stepPayload } from '../../core/steps/step-values.ts'
import { recordSteps, settleWaits, type Wait } from '../../core/steps/steps.ts'
import type { Holder, Instant, TaskRecord } from '../../core/task.ts'
import { type Duration, parseDuration } from '../../core/values/durations.ts'
import { checkOptionNames } from '../../core/values/option-names.ts'
import type { Session } from '../session.ts'
import { read, settle } from './settle.ts'

/** The recorded result of a step, or the key to run it with. */
export type StepBegun =
  | { readonly state: 'recorded'; readonly value: unknown }
  /** Run it with this key for its effects in other systems, then call `record`. */
  | { readonly state: 'run'; readonly key: string }

/** `until`: when the task is due again at the latest; null: after the signal alone. `cancelled`: a cancel was requested, and the run is over. */
export type WaitOutcome =
  | { readonly state: 'over' }
  | { readonly state: 'parked'; readonly until: Instant | null }
  | { readonly state: 'cancelled' }

/** What became of a wait for a signal. */
export type SignalOutcome =
  | Exclude<WaitOutcome, { readonly state: 'over' }>
  | {
      readonly state: 'taken'
      readonly value: unknown
      readonly signal: { readonly id: string; readonly name: string; readonly at: Instant }
    }
  | { readonly state: 'timed-out' }
  /** A handler with a schema has refused the signal in an earlier run. */
  | { readonly state: 'refused'; readonly error: string }

/** How long a write is decided again while others write to the task. */
const PATIENCE = 15_000

/** Durable steps of a task that is driven by hand: `lease.steps`. */
export class LeaseSteps {
  readonly #session: Session
  readonly #record: TaskRecord
  readonly #holder: Holder

  constructor(session: Session, record: TaskRecord, holder: Holder) {
    this.#session = session
    this.#record = record
    this.#holder = holder
  }

  /** What this run and earlier ones have recorded. */
  async list(): Promise<readonly ShownStep[]> {
    return shownSteps(await this.#held())
  }

  /** The recorded value of a step, or the key to run it with. */
  async begin(name: string): Promise<StepBegun> {
    checkStepName(name)
    const task = await this.#held()
    const state = stepState(task.journal, name)
    if (state === undefined) return { state: 'run', key: stepKey(task, name) }
    return { state: 'recorded', value: recordedIn(name, state) }
  }

  /** Records the result of a step, and resolves with what is recorded: the first result stands. */
  async record(name: string, value: unknown): Promise<unknown> {
    checkStepName(name)
    const { maxPayload, time } = this.#session
    const results = [{ name, value: stepPayload(name, value, maxPayload) }]
    const task = await settle(this.#session, await this.#held(), {
      op: this.#op,
      // Recognised by its name, in the journal.
      moves: [],
      patience: PATIENCE,
      decide: (fresh) => recordSteps(fresh, this.#holder, results, { now: time.now(), maxPayload }),
    })
    return recordedIn(name, stepState(task.journal, name)!)
  }

  /** Parks the task until the duration has passed, counted from the first call with this name. */
  async sleep(name: string, duration: Duration): Promise<WaitOutcome> {
    const until = this.#session.time.now() + parseDuration(duration, 'duration')
    const { outcome, task } = await this.#wait({ name: checkStepName(name), signal: null, until })
    const state = stepState(task.journal, name)
    if (state !== undefined && state.kind !== 'sleep') throw mismatch(name, state)
    return outcome
  }

  /** Takes a signal that is there, or parks the task until one comes or the timeout has passed. */
  async waitFor(
    name: string,
    options: { readonly signal?: string; readonly timeout?: Duration } = {},
  ): Promise<SignalOutcome> {
    checkOptionNames(options, ['signal', 'timeout'], 'waitFor')
    const { signal = name, timeout } = options
    const until = timeout === undefined ? null : this.#session.time.now() + parseDuration(timeout, 'timeout')
    const wait = { name: checkStepName(name), signal: checkStepName(signal, 'signal'), until }
    const { outcome, task } = await this.#wait(wait)
    if (outcome.state !== 'over') return outcome
    const state = stepState(task.journal, name)
    if (state?.kind === 'timed-out') return { state: 'timed-out' }
    if (state?.kind !== 'taken') throw mismatch(name, state)
    const { signal: entry, error } = state
    if (error !== null) return { state: 'refused', error }
    return {
      state: 'taken',
      value: recordedValue(entry),
      signal: { id: entry.signalId!, name: entry.name, at: entry.at },
    }
  }

  async #wait(wait: Wait): Promise<{ readonly outcome: WaitOutcome; readonly task: TaskRecord }> {
    const { maxPayload, time } = this.#session
    const start = await read(this.#session, this.#record.id)
    // A repeat whose first reply was lost: the task may have been claimed again since.
    if (hasOp(start, this.#op, ['park'])) return { outcome: parkedBy(start, this.#op), task: start }
    mustFit(start, wait)
    const task = await settle(this.#session, start, {
      op: this.#op,
      moves: ['park'],
      patience: PATIENCE,
      decide: (fresh) => {
        const facts = { now: time.now(), maxPayload, refusal: () => null }
        return settleWaits(fresh, this.#holder, [wait], facts).change
      },
    })
    const isParked = hasOp(task, this.#op, ['park'])
    return { outcome: isParked ? parkedBy(task, this.#op) : { state: 'over' }, task }
  }

  /** With its journal, which a claim does not bring. */
  async #held(): Promise<TaskRecord> {
    const task = await read(this.#session, this.#record.id)
    holding(task, this.#holder)
    return task
  }

  get #op(): string {
    return 'token' in this.#holder ? this.#holder.token : (this.#record.lease?.token ?? '')
  }
}

/** Before anything is written: a name that is recorded as another kind of step. */
const mustFit = ({ journal }: TaskRecord, { name, signal }: Wait): void => {
  const state = stepState(journal, name)
  if (state !== undefined && (state.kind === 'step' || (state.kind === 'sleep') !== (signal === null)))
    throw mismatch(name, state)
}

const parkedBy = ({ history }: TaskRecord, op: string): WaitOutcome => {
  const entry = history.findLast((one) => one.op === op && one.move === 'park')!
  if (entry.to === 'cancelled') return { state: 'cancelled' }
  return { state: 'parked', until: entry.availableAt ?? null }
}

const recordedIn = (name: string, state: StepState): unknown => {
  if (state.kind !== 'step') throw mismatch(name, state)
  return recordedValue(state.entry)
}
