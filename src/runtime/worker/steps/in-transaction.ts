/** Steps and the end of a run that commit with the rows of the handler's own transaction, or not at all. */
import { HoldfastError } from '../../../core/errors.ts'
import { complete, holding } from '../../../core/machine.ts'
import { recordedValue, type StepState, stepKey, stepState } from '../../../core/steps/journal.ts'
import { mismatch, stepPayload } from '../../../core/steps/step-values.ts'
import { recordSteps, type StepResult } from '../../../core/steps/steps.ts'
import type { Change, TaskRecord } from '../../../core/task.ts'
import type { Output } from '../../../core/values/output.ts'
import { decodePayload } from '../../../core/values/payload.ts'
import { isThenable } from '../../../core/values/thenable.ts'
import type { JoinedTransaction } from '../../../store/store.ts'
import type { InTransaction, StepContext } from '../../handler.ts'
import { notFound, type Session } from '../../session.ts'
import { joinTransaction } from '../../tasks/join-transaction.ts'
import type { Attempt } from '../attempt.ts'

/** What the transaction writes, if it is committed. */
export interface JoinedEnd {
  readonly task: TaskRecord
  readonly change: Change
}

/** Throws at once where the transaction is synchronous, so that the caller's own function fails with it. */
export const completeIn = (
  session: Session,
  attempt: Attempt,
  output: Output,
  { tx }: InTransaction,
): Promise<void> => {
  const joined = joinTransaction(session, tx)
  const now = session.time.now()
  let end: JoinedEnd
  const done = joined.change(attempt.record.id, (given) => {
    const task = mustExist(given, attempt)
    end = { task, change: complete(task, attempt, output, now) }
    return end.change
  })
  attempt.hasJoined = true
  const written = (): void => {
    attempt.joinedEnd = end
  }
  if (isThenable(done)) return done.then(written) as Promise<void>
  return Promise.resolve(written())
}

/** The step is looked up inside the transaction: an earlier transaction with an unknown outcome may have recorded it. */
export const stepIn = (
  session: Session,
  attempt: Attempt,
  name: string,
  run: (step: StepContext) => unknown,
  { tx }: InTransaction,
): unknown => {
  const joined = joinTransaction(session, tx)
  attempt.hasJoined = true
  const step = new JoinedStep(session, attempt, name, joined)
  return joined.isSynchronous ? step.now(run) : step.later(run)
}

class JoinedStep {
  readonly #session: Session
  readonly #attempt: Attempt
  readonly #name: string
  readonly #joined: JoinedTransaction

  constructor(session: Session, attempt: Attempt, name: string, joined: JoinedTransaction) {
    this.#session = session
    this.#attempt = attempt
    this.#name = name
    this.#joined = joined
  }

  now(run: (step: StepContext) => unknown): unknown {
    const begun = this.#begin(this.#joined.read(this.#id) as TaskRecord | null)
    if ('value' in begun) return begun.value
    const value = run({ key: begun.key })
    if (isThenable(value))
      throw new HoldfastError(
        'INVALID_OPTION',
        `step '${this.#name}' returned a promise: in a transaction on SQLite its function must be synchronous`,
        { step: this.#name },
      )
    const result = this.#result(value)
    void this.#joined.change(this.#id, (task) => this.#record(task, result))
    return decoded(result)
  }

  async later(run: (step: StepContext) => unknown): Promise<unknown> {
    const begun = this.#begin(await this.#joined.read(this.#id))
    if ('value' in begun) return begun.value
    const result = this.#result(await run({ key: begun.key }))
    await this.#joined.change(this.#id, (task) => this.#record(task, result))
    return decoded(result)
  }

  get #id(): string {
    return this.#attempt.record.id
  }

  #begin(given: TaskRecord | null): { readonly value: unknown } | { readonly key: string } {
    const task = mustExist(given, this.#attempt)
    holding(task, this.#attempt)
    const state: StepState | undefined = stepState(task.journal, this.#name)
    if (state === undefined) return { key: stepKey(task, this.#name) }
    if (state.kind !== 'step') throw mismatch(this.#name, state)
    return { value: recordedValue(state.entry) }
  }

  #result(value: unknown): StepResult {
    return { name: this.#name, value: stepPayload(this.#name, value, this.#session.maxPayload) }
  }

  #record(given: TaskRecord | null, result: StepResult): Change {
    const facts = { now: this.#session.time.now(), maxPayload: this.#session.maxPayload }
    const change = recordSteps(mustExist(given, this.#attempt), this.#attempt, [result], facts)
    if (change !== null) return change
    // Its effect must not be committed twice.
    throw new HoldfastError(
      'STORE_CONFLICT',
      `step '${this.#name}' was recorded by another transaction of this run: roll this one back`,
      { step: this.#name },
    )
  }
}

const decoded = ({ value }: StepResult): unknown =>
  value === null ? undefined : decodePayload(value.text, value.encoding)

const mustExist = (task: TaskRecord | null, { record: { id } }: Attempt): TaskRecord => {
  if (task === null) throw notFound(id)
  return task
}
