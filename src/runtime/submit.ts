/** From a caller's words to a stored task: check, build, insert, and recognise our own earlier write. */
import { createHash } from 'node:crypto'
import { asHoldfastError, HoldfastError, isContactLost, isOfTheStore } from '../core/errors.ts'
import { keySubject } from '../core/idempotency.ts'
import { encodePayload, type Payload } from '../core/payload.ts'
import { Task } from '../core/snapshot.ts'
import { newSubmission, type SubmitFacts, type SubmitOptions } from '../core/submission.ts'
import type { Instant, TaskRecord } from '../core/task.ts'
import type { Inserted, Insertion } from '../store/store.ts'
import { Batch } from './batch.ts'
import { checkSchema, type TaskDefinition } from './definition.ts'
import { newId } from './ids.ts'
import type { Queues } from './queues.ts'
import { newOp, type Session } from './session.ts'
import { withPatience } from './settle.ts'

/** What is about to be inserted, with what decides about a clash. */
interface Prepared {
  readonly insertion: Insertion
  readonly onMismatch: 'error' | 'existing'
}

/** What tasks that are submitted together have in common. */
interface Call {
  readonly op: string
  readonly now: Instant
}

export type SubmitResult =
  | { readonly ok: true; readonly task: Task }
  | { readonly ok: false; readonly error: HoldfastError }

export interface SubmitItem {
  readonly definition: TaskDefinition
  readonly input: unknown
  readonly options: SubmitOptions
  /** Where Holdfast itself submits. Whoever was first under such a key, it is the same work. */
  readonly reserved?: SubmitFacts['reserved']
}

/** Tasks in one insert: enough to share a transaction, few enough to leave the store free for others. */
const CHUNK = 650
/** Fewer, so that the store has something to do while the next ones are made ready. */
const FIRST_CHUNK = 350
const CHUNKS_IN_FLIGHT = 4
/** Single submits that share a batch. */
const MOST_TOGETHER = 1_000

export class Submitter {
  readonly #session: Session
  readonly #queues: Queues
  readonly #batch: Batch<Insertion, Inserted>

  constructor(session: Session, queues: Queues) {
    this.#session = session
    this.#queues = queues
    this.#batch = new Batch((insertions) => this.#insert(insertions), MOST_TOGETHER)
  }

  async one(item: SubmitItem): Promise<Task> {
    const ready = this.#prepare(item, this.#newCall())
    const prepared = ready instanceof Promise ? await ready : ready
    const [inserted] = await Promise.all([
      this.#batch.add(prepared.insertion),
      this.#queues.know(prepared.insertion.task.queue),
    ])
    return this.#conclude(prepared, inserted)
  }

  /** Inside the caller's transaction: everything up to the write happens before this returns its promise. */
  inTransaction(item: SubmitItem, tx: unknown): Promise<Task> {
    try {
      const prepared = this.#prepare(item, this.#newCall())
      if (prepared instanceof Promise) {
        prepared.catch(() => {})
        throw new HoldfastError(
          'INVALID_OPTION',
          'tx cannot be used with a schema that validates asynchronously: the transaction would be over',
          { field: 'tx' },
        )
      }
      if (!this.#session.store.capabilities.has('transactions')) {
        throw new HoldfastError(
          'INVALID_OPTION',
          `tx is not possible on ${this.#session.store.address}: this store has no transactions to join`,
          { field: 'tx' },
        )
      }
      const inserting = this.#session.store.insert([prepared.insertion], { tx, now: null })
      // The caller's transaction may hold the lock that this needs, so nobody waits for it.
      this.#queues.know(prepared.insertion.task.queue).catch(() => {})
      return inserting.then(([inserted]) => this.#conclude(prepared, inserted!))
    } catch (error) {
      return Promise.reject(error)
    }
  }

  /** Each item has its own result; a bad one does not stop the others. */
  async many(items: readonly SubmitItem[]): Promise<SubmitResult[]> {
    const results: SubmitResult[] = new Array(items.length)
    const op = newOp()
    let next = 0
    const lane = async (): Promise<void> => {
      while (next < items.length) {
        const start = next
        next += start === 0 ? FIRST_CHUNK : CHUNK
        await this.#chunk(items.slice(start, next), start, op, results)
      }
    }
    await Promise.all(Array.from({ length: CHUNKS_IN_FLIGHT }, lane))
    return results
  }

  async #chunk(items: readonly SubmitItem[], start: number, op: string, results: SubmitResult[]): Promise<void> {
    const good: { readonly at: number; readonly prepared: Prepared }[] = []
    // One instant for all of a chunk: what is alike can be written as one.
    const call = { op, now: this.#session.time.now() }
    for (const [i, item] of items.entries()) {
      try {
        const ready = this.#prepare(item, call)
        good.push({ at: start + i, prepared: ready instanceof Promise ? await ready : ready })
      } catch (error) {
        results[start + i] = { ok: false, error: asHoldfastError(error) }
      }
    }
    if (good.length > 0) await this.#insertChunk(good, results)
  }

  async #insertChunk(
    good: readonly { readonly at: number; readonly prepared: Prepared }[],
    results: SubmitResult[],
  ): Promise<void> {
    try {
      const queues = new Set(good.map(({ prepared }) => prepared.insertion.task.queue))
      const [inserted] = await Promise.all([
        this.#insert(good.map(({ prepared }) => prepared.insertion)),
        ...[...queues].map((queue) => this.#queues.know(queue)),
      ])
      for (const [i, { at, prepared }] of good.entries()) results[at] = this.#result(prepared, inserted[i]!)
    } catch (error) {
      // The store said no, and nothing was written: perhaps only one of them was too much for it.
      if (good.length > 1 && !isOfTheStore(error)) for (const one of good) await this.#insertChunk([one], results)
      else for (const { at } of good) results[at] = { ok: false, error: asHoldfastError(error) }
    }
  }

  #result(prepared: Prepared, inserted: Inserted): SubmitResult {
    try {
      return { ok: true, task: this.#conclude(prepared, inserted) }
    } catch (error) {
      return { ok: false, error: asHoldfastError(error) }
    }
  }

  /** The record is ready at once unless the schema takes its time. */
  #prepare(item: SubmitItem, call: Call): Prepared | Promise<Prepared> {
    const checked = checkSchema(item.definition.input, item.input, 'input', 'INVALID_TASK')
    return checked instanceof Promise ? checked.then(() => this.#build(item, call)) : this.#build(item, call)
  }

  #newCall(): Call {
    return { op: newOp(), now: this.#session.time.now() }
  }

  #build({ definition, input, options, reserved }: SubmitItem, { op, now }: Call): Prepared {
    const { name, maxPayload } = this.#session
    const payload = encodePayload(input, 'input', maxPayload)
    const { task, key } = newSubmission(definition.type, payload, options, {
      now,
      id: newId(),
      op,
      by: name,
      ...(reserved === undefined ? null : { reserved }),
    })
    const insertion =
      key === null || task.idempotencyKey === null
        ? { task }
        : { task, key: { key: task.idempotencyKey, taskId: task.id, hash: hashOf(task.type, payload), ...key } }
    return { insertion, onMismatch: options.onMismatch ?? (reserved === undefined ? 'error' : 'existing') }
  }

  async #insert(insertions: readonly Insertion[]): Promise<readonly Inserted[]> {
    try {
      return await withPatience(this.#session, () => this.#session.store.insert(insertions, { now: null }))
    } catch (error) {
      if (!isContactLost(error)) throw error
      const { code, message } = error as HoldfastError
      const ids = insertions.map(({ task }) => task.id)
      throw new HoldfastError(
        code,
        `${message}. The task may or may not have been stored: submit again with the same id or idempotency key`,
        { ids },
        error,
      )
    }
  }

  #conclude({ insertion: { task, key }, onMismatch }: Prepared, inserted: Inserted): Task {
    if (inserted.outcome === 'created' || isOwnWrite(task, inserted)) {
      this.#session.events.submitted(task)
      return new Task(task)
    }
    if (inserted.outcome === 'clash')
      throw new HoldfastError('ALREADY_EXISTS', `a task with id ${task.id} exists already`, { id: task.id })
    if (inserted.key.hash !== key?.hash && onMismatch === 'error') {
      throw new HoldfastError(
        'IDEMPOTENCY_CONFLICT',
        `idempotencyKey '${inserted.key.key}' belongs to task ${inserted.key.taskId} with another type or input`,
        { key: inserted.key.key, id: inserted.key.taskId },
      )
    }
    return new Task(inserted.task ?? removedTask(task, inserted.key.taskId), true)
  }
}

/** The reply to an earlier try was lost: what stands there is what we wrote. */
const isOwnWrite = (task: TaskRecord, inserted: Inserted): boolean => {
  const found = inserted.outcome === 'created' ? null : inserted.task
  return found?.id === task.id && found.history[0]?.op === task.history[0]?.op
}

/** A task that prune took away while its key lives on: known to have ended, and not to be seen any more. */
const removedTask = (task: TaskRecord, id: string): TaskRecord => ({ ...task, id, status: 'archived', history: [] })

export const hashOf = (type: string, input: Payload): string =>
  createHash('sha256').update(keySubject(type, input)).digest('base64url')
