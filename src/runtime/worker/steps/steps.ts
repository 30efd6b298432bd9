/** The durable steps of one run: looks them up, runs and records them, and parks the task while the handler waits. */
import { HoldfastError } from '../../../core/errors.ts'
import { hasOp, holding } from '../../../core/machine.ts'
import {
  checkStepName,
  readJournal,
  recordedValue,
  type ShownStep,
  type StepState,
  shownSteps,
  stepKey,
  stepState,
} from '../../../core/steps/journal.ts'
import { Parked, SignalInvalid, SignalTimeout } from '../../../core/steps/step-errors.ts'
import { mismatch, stepPayload } from '../../../core/steps/step-values.ts'
import { recordSteps, settleWaits, signalsFor, type WaitsSettled } from '../../../core/steps/steps.ts'
import type { Instant, JournalEntry, TaskRecord } from '../../../core/task.ts'
import { type Duration, parseDuration } from '../../../core/values/durations.ts'
import { checkOptionNames } from '../../../core/values/option-names.ts'
import { decodePayload, type Payload } from '../../../core/values/payload.ts'
import { isThenable } from '../../../core/values/thenable.ts'
import { soon } from '../../clock.ts'
import { asSchema, checkSchema } from '../../definition.ts'
import type { InTransaction, StepContext, WaitForOptions } from '../../handler.ts'
import { withPatience } from '../../patience.ts'
import { notFound, type Session } from '../../session.ts'
import type { Attempt } from '../attempt.ts'
import { stepIn } from './in-transaction.ts'
import { mustBeFunction, mustBeOutside, runInStep } from './inside-step.ts'
import { type JournalWriter, lost } from './journal-writer.ts'
import { isResultOf, mayBeLeft, type OpenWait, type SignalCheck, schemaCheck, type Unrecorded } from './values.ts'

export interface StepsHost {
  readonly session: Session
  readonly writer: JournalWriter
  /** The park is written: the run is over, even if the handler continues. */
  parked(attempt: Attempt): void
}

export class Steps {
  readonly #attempt: Attempt
  readonly #host: StepsHost
  /** The names that this run has used. */
  readonly #used = new Set<string>()
  /** Of these: the names of steps in transactions of the handler. */
  readonly #joined = new Set<string>()
  /** Steps that run or are being written. */
  #underWay = 0
  #unrecorded: Unrecorded[] = []
  #isWriting = false
  readonly #waits: OpenWait[] = []
  #isChecking = false
  #loading: Promise<void> | null = null
  #isScheduled = false
  /** Called when the write that may park the task is decided. */
  readonly #decided: (() => void)[] = []
  #isParking = false

  constructor(attempt: Attempt, host: StepsHost) {
    this.#attempt = attempt
    this.#host = host
  }

  // ── what a handler calls ─────────────────────────────────────────────────────────────────────────────────────

  async step(name: string, run: (step: StepContext) => unknown): Promise<unknown> {
    mustBeFunction(name, run)
    const begun = await this.begin(name)
    if ('value' in begun) return begun.value
    try {
      const result = await runInStep(this, name, () => run({ key: begun.key }))
      const payload = stepPayload(name, result, this.#host.session.maxPayload)
      await this.record(name, payload)
      return payload === null ? undefined : decodePayload(payload.text, payload.encoding)
    } finally {
      this.leave()
    }
  }

  /** Committed with the caller's transaction. A name may come again, because that transaction may have been rolled back. */
  stepIn(name: string, run: (step: StepContext) => unknown, options: InTransaction): Promise<unknown> {
    checkOptionNames(options, ['tx'], 'step')
    mustBeFunction(name, run)
    if (this.#joined.has(name)) this.mustGoOn()
    else this.#use(name)
    this.#joined.add(name)
    this.#underWay++
    try {
      const inStep = (step: StepContext): unknown => runInStep(this, name, () => run(step))
      const value = stepIn(this.#host.session, this.#attempt, name, inStep, options)
      if (isThenable(value)) return this.#leaveAfter(value)
      this.leave()
      return Promise.resolve(value)
    } catch (error) {
      this.leave()
      throw error
    }
  }

  sleep(name: string, duration: Duration): Promise<void> {
    return mayBeLeft(this.#sleep(name, duration))
  }

  async #sleep(name: string, duration: Duration): Promise<void> {
    mustBeOutside(this, name)
    const length = parseDuration(duration, 'duration')
    const state = await this.#wait(name, null, length, null)
    if (state !== undefined && state.kind !== 'sleep') throw mismatch(name, state)
  }

  waitFor(name: string, options: WaitForOptions = {}): Promise<unknown> {
    return mayBeLeft(this.#waitFor(name, options))
  }

  async #waitFor(name: string, options: WaitForOptions): Promise<unknown> {
    mustBeOutside(this, name)
    checkOptionNames(options, ['signal', 'timeout', 'schema'], 'waitFor')
    const { timeout } = options
    const schema = asSchema(options.schema, 'schema')
    const signal = options.signal === undefined ? checkStepName(name) : checkStepName(options.signal, 'signal')
    const length = timeout === undefined ? null : parseDuration(timeout, 'timeout')
    const value = await this.takeSignal(name, signal, length, schema === null ? null : schemaCheck(schema))
    if (schema === null) return value
    return (await checkSchema(schema, value, 'signal', 'SIGNAL_INVALID')).value
  }

  async list(): Promise<readonly ShownStep[]> {
    await this.#load()
    if (this.#isOver) throw lost(this.#attempt)
    return shownSteps(this.#attempt.record)
  }

  // ── its parts, for handlers that run elsewhere ───────────────────────────────────────────────────────────────

  /** The recorded value of the step, or the key of its effect. In the second case call `record` and then `leave`. */
  async begin(
    name: string,
  ): Promise<{ readonly value: unknown; readonly entry: JournalEntry } | { readonly key: string }> {
    this.#use(name)
    // If the task is parked, the step must not run: its result could not be recorded.
    while (this.#isParking) await new Promise<void>((decided) => this.whenDecided(decided))
    this.#underWay++
    try {
      const state = await this.#stateOf(name)
      if (state === undefined) return { key: stepKey(this.#attempt.record, name) }
      if (state.kind !== 'step') throw mismatch(name, state)
      this.leave()
      return { value: recordedValue(state.entry), entry: state.entry }
    } catch (error) {
      this.leave()
      throw error
    }
  }

  /** Resolves when the result is stored. The results of one tick are one write. */
  record(name: string, value: Payload | null): Promise<void> {
    if (this.#isOver) return Promise.reject(lost(this.#attempt))
    return new Promise((resolve, reject) => {
      this.#unrecorded.push({ name, value, resolve, reject })
      this.#writeResults()
    })
  }

  /** The step is over, recorded or not. */
  leave(): void {
    this.#underWay--
    this.#settleSoon()
  }

  /** The value of the signal that this step takes. */
  async takeSignal(name: string, signal: string, length: number | null, check: SignalCheck | null): Promise<unknown> {
    const state = await this.#wait(name, signal, length, check)
    if (state?.kind === 'timed-out') throw new SignalTimeout(name)
    if (state?.kind !== 'taken') throw mismatch(name, state)
    const { signal: entry, error } = state
    if (error !== null) throw new SignalInvalid(name, { id: entry.signalId!, name: entry.name, at: entry.at }, error)
    return recordedValue(entry)
  }

  async #leaveAfter(value: PromiseLike<unknown>): Promise<unknown> {
    try {
      return await value
    } finally {
      this.leave()
    }
  }

  mustGoOn(): void {
    if (this.#isOver) throw lost(this.#attempt)
  }

  // ── what the worker asks ─────────────────────────────────────────────────────────────────────────────────────

  /** A write is under way that may park the task: what the handler returned counts only if it does not. */
  get isParking(): boolean {
    return this.#isParking
  }

  /** A step runs or is being written. */
  get isUnderWay(): boolean {
    return this.#underWay > 0
  }

  /** Calls `done` when that write is decided. */
  whenDecided(done: () => void): void {
    this.#decided.push(done)
  }

  // ── results ──────────────────────────────────────────────────────────────────────────────────────────────────

  get #isOver(): boolean {
    const { isSettled, isWritten, abortedFor } = this.#attempt
    return isSettled || isWritten || abortedFor === 'lease-lost'
  }

  #use(name: string): void {
    checkStepName(name)
    this.mustGoOn()
    if (this.#used.has(name))
      throw new HoldfastError('STEP_REPEATED', `step '${name}' was used twice in one run`, { step: name })
    this.#used.add(name)
  }

  async #stateOf(name: string): Promise<StepState | undefined> {
    await this.#load()
    if (this.#isOver) throw lost(this.#attempt)
    return stepState(this.#attempt.record.journal, name)
  }

  /** A claim brings no journal. It is read once, when the first step asks for it. */
  #load(): Promise<void> {
    const { record } = this.#attempt
    if (!record.hasJournal || record.journal.length > 0) return Promise.resolve()
    this.#loading ??= this.#read().finally(() => {
      this.#loading = null
    })
    return this.#loading
  }

  async #read(): Promise<void> {
    const { session } = this.#host
    const attempt = this.#attempt
    const [fresh] = await withPatience(session, () => session.store.get([attempt.record.id]))
    if (fresh === null || fresh === undefined) throw notFound(attempt.record.id)
    holding(fresh, attempt)
    attempt.record = fresh
  }

  #writeResults(): void {
    if (this.#isWriting || this.#unrecorded.length === 0) return
    this.#isWriting = true
    let some: readonly Unrecorded[] = []
    this.#host.writer.push({
      attempt: this.#attempt,
      decide: (task, now) => {
        // Those that ended in the same tick are written with the first.
        if (some.length === 0) some = this.#unrecorded.splice(0)
        if (this.#attempt.isWritten) throw lost(this.#attempt)
        return recordSteps(task, this.#attempt, some, { now, maxPayload: this.#host.session.maxPayload })
      },
      isWrittenIn: ({ journal }) => some.every(({ name }) => isResultOf(journal, name, this.#attempt.token)),
      written: () =>
        this.#wrote(() => {
          for (const { resolve } of some) resolve()
        }),
      failed: (error) =>
        this.#wrote(() => {
          for (const { reject } of some) reject(error)
        }),
    })
  }

  #wrote(tell: () => void): void {
    this.#isWriting = false
    tell()
    this.#writeResults()
    this.#settleSoon()
  }

  // ── waits ────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Resolves with the record of the step when it is over; undefined for a sleep without a length. */
  async #wait(
    name: string,
    signal: string | null,
    length: number | null,
    check: SignalCheck | null,
  ): Promise<StepState | undefined> {
    this.#use(name)
    if (this.#attempt.batch !== null)
      throw new HoldfastError('INVALID_OPTION', `step '${name}': a task of a batch cannot sleep or wait`, {
        step: name,
      })
    const state = await this.#stateOf(name)
    const isOpen = state === undefined || state.kind === (signal === null ? 'sleep' : 'wait')
    if (!isOpen || (signal === null && length === 0 && state === undefined)) return state
    const until = length === null ? null : this.#host.session.time.now() + length
    await new Promise<void>((resolve, reject) => {
      this.#waits.push({ name, signal, until, check, verdicts: new Map(), resolve, reject })
      this.#settleSoon()
    })
    return stepState(this.#attempt.record.journal, name)
  }

  /** Not at once: after a step the handler may begin another one, and that must end before the task is parked. */
  #settleSoon(): void {
    if (this.#isScheduled || this.#waits.length === 0) return
    this.#isScheduled = true
    soon(() => {
      this.#isScheduled = false
      void this.#settle().catch((error: unknown) => this.#rejectAll(error))
    })
  }

  async #settle(): Promise<void> {
    if (this.#waits.length === 0 || this.#underWay > 0 || this.#isWriting || this.#isChecking) return
    if (this.#isOver) return this.#rejectAll(lost(this.#attempt))
    await this.#checkSignals()
    // A step may have begun while a schema looked at the signal. Its end comes back here.
    if (this.#underWay > 0 || this.#isWriting) return
    this.#isWriting = true
    this.#isParking = true
    const waits = [...this.#waits]
    let settled: WaitsSettled | null = null
    this.#host.writer.push({
      attempt: this.#attempt,
      decide: (task, now) => {
        settled = this.#decide(task, now, waits)
        return settled?.change ?? null
      },
      isWrittenIn: (task) => settled?.kind === 'parked' && hasOp(task, this.#attempt.token, ['park']),
      written: () => this.#settled(settled),
      failed: (error) => {
        this.#rejectAll(error)
        this.#settled(null)
      },
    })
  }

  /** null: a signal has to be checked first, or the handler has settled meanwhile. */
  #decide(task: TaskRecord, now: Instant, waits: readonly OpenWait[]): WaitsSettled | null {
    if (this.#attempt.isSettled) return null
    if (this.#attempt.isWritten) throw lost(this.#attempt)
    for (const [wait, { signalId }] of signalsFor(readJournal(task.journal), waits))
      if ((wait as OpenWait).check !== null && !(wait as OpenWait).verdicts.has(signalId!)) return null
    return settleWaits(task, this.#attempt, waits, {
      now,
      maxPayload: this.#host.session.maxPayload,
      refusal: (wait, { signalId }) => (wait as OpenWait).verdicts.get(signalId!) ?? null,
    })
  }

  async #checkSignals(): Promise<void> {
    this.#isChecking = true
    try {
      for (const [wait, signal] of signalsFor(readJournal(this.#attempt.record.journal), this.#waits)) {
        const { check, verdicts } = wait as OpenWait
        if (check !== null && !verdicts.has(signal.signalId!))
          verdicts.set(signal.signalId!, await check(recordedValue(signal)))
      }
    } finally {
      this.#isChecking = false
    }
  }

  #settled(settled: WaitsSettled | null): void {
    this.#isWriting = false
    this.#isParking = false
    if (settled?.kind === 'parked') this.#parked()
    else if (settled !== null) this.#resolveEnded()
    for (const done of this.#decided.splice(0)) done()
    this.#writeResults()
    this.#settleSoon()
  }

  #parked(): void {
    this.#host.parked(this.#attempt)
    for (const { name, reject } of this.#waits.splice(0)) reject(new Parked(name))
  }

  #resolveEnded(): void {
    const { record } = this.#attempt
    const { steps } = readJournal(record.journal)
    const now = Math.max(this.#host.session.time.now(), record.lease!.claimedAt)
    const isOver = ({ name, signal, until }: OpenWait): boolean => {
      const state = steps.get(name)
      // The end of a wait for a signal is recorded before it counts.
      if (signal !== null) return state?.kind === 'taken' || state?.kind === 'timed-out'
      return (state?.kind === 'sleep' ? state.until : until!) <= now
    }
    const over = this.#waits.filter(isOver)
    for (const wait of over) this.#waits.splice(this.#waits.indexOf(wait), 1)
    for (const { resolve } of over) resolve()
  }

  #rejectAll(error: unknown): void {
    for (const { reject } of this.#waits.splice(0)) reject(error)
  }
}
