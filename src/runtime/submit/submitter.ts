/** Turns a submit call into a stored task: checks the options, builds the record, inserts it, and recognises its own earlier write. */
import { createHash } from 'node:crypto'
import {
  asHoldfastError,
  HoldfastError,
  isContactLost,
  isHoldfastError,
  isOfTheStore,
  isUnconnected,
} from '../../core/errors.ts'
import { keySubject } from '../../core/idempotency.ts'
import { Task } from '../../core/observe/task-view.ts'
import { DEFAULTS, newSubmission, type SubmitFacts, type SubmitOptions } from '../../core/submission.ts'
import type { Instant, TaskRecord } from '../../core/task.ts'
import { encodePayload, type Payload } from '../../core/values/payload.ts'
import type { Inserted, Insertion } from '../../store/store.ts'
import { soon } from '../clock.ts'
import {
  asDefinition,
  checkSchema,
  type TaskDefinition,
  type Transaction,
  type TypeOrDefinition,
  withDefaults,
} from '../definition.ts'
import { newId } from '../ids.ts'
import { withPatience } from '../patience.ts'
import type { Queues } from '../queues/queues.ts'
import { newOp, type Session } from '../session.ts'
import { mustHaveTransactions } from '../tasks/join-transaction.ts'
import { Batch } from './batch.ts'
import { Coalescer } from './coalesce.ts'
import { InTurn } from './in-turn.ts'

/** A record to insert, and what to do if its id or key exists. */
interface Prepared {
  insertion: Insertion
  readonly onMismatch: 'error' | 'existing'
  /** The same task with another submit time; relative times count from it. */
  stamped(now: Instant): Insertion
}

/** The arguments of `submit`. */
export interface Submission {
  readonly type: TypeOrDefinition
  readonly input: unknown
  readonly options: SubmitOptions
  readonly tx: Transaction | undefined
}

/** What the tasks of one submit call have in common. */
interface Call {
  readonly op: string
  readonly now: Instant
}

/** The result of one task of `submitMany`: the task, or the error that refused it. */
export type SubmitResult<Input = unknown, Output = unknown> =
  | { readonly ok: true; readonly task: Task<Input, Output> }
  | { readonly ok: false; readonly error: HoldfastError }

export interface SubmitItem {
  readonly definition: TaskDefinition
  readonly input: unknown
  readonly options: SubmitOptions
  /** Set when Holdfast itself submits. An existing task with such a key is always the same work. */
  readonly reserved?: SubmitFacts['reserved']
}

/** An item and its place in the list. */
interface Placed {
  readonly at: number
  readonly item: SubmitItem
}

/** Tasks per insert: enough to share a transaction, few enough not to block the store for others. */
const CHUNK = 650
/** The first chunk is smaller, so that the store is busy while the next chunks are prepared. */
const FIRST_CHUNK = 350
const CHUNKS_IN_FLIGHT = 4
/** Single submits that share a batch. */
const MOST_TOGETHER = 1_000
/** How long to retry while connections are refused: a restarting server is usually back by then. */
const PATIENCE = 10_000
/** How many submits with an unclear outcome are remembered. */
const MOST_UNCLEAR = 10_000
/** Triggers of one submitMany that are under way at once. */
const TRIGGERS_IN_FLIGHT = 64

export class Submitter {
  readonly #session: Session
  readonly #queues: Queues
  readonly #batch: Batch<Prepared, Inserted>
  /** By task id: the op of a submit that failed for its caller but may have been stored. */
  readonly #unclear: Map<string, string>
  readonly #turns: InTurn
  readonly #coalescer: Coalescer

  constructor(session: Session, queues: Queues, unclear = new Map<string, string>(), turns = new InTurn()) {
    this.#session = session
    this.#queues = queues
    this.#unclear = unclear
    this.#turns = turns
    this.#coalescer = new Coalescer(session, (stamped) => this.#insertOne(stamped), turns)
    this.#batch = new Batch((prepared) => this.#insert(prepared), MOST_TOGETHER)
  }

  /** A submitter for another session of the same client. Both share the list of unclear submits. */
  beside(session: Session): Submitter {
    return new Submitter(session, this.#queues, this.#unclear, this.#turns)
  }

  /** One task in one call. */
  submit({ type, input, options, tx }: Submission): Promise<Task> {
    const { tracing } = this.#session
    const definition = asDefinition(type)
    const wanted = withDefaults(definition, options)
    const put = (chosen: SubmitOptions): Promise<Task> => {
      const item = { definition, input, options: chosen }
      return tx === undefined ? this.#one(item) : this.#inTransaction(item, tx)
    }
    if (tracing === null) return put(wanted)
    const what = { type: definition.type, queue: wanted.queue ?? DEFAULTS.queue }
    return tracing.submit(what, (tagged) => put(tagged(wanted)))
  }

  async #one(item: SubmitItem): Promise<Task> {
    if (item.options.coalesce !== undefined) return this.#coalescer.submit(item)
    const ready = this.#prepare(item, this.#newCall())
    const prepared = ready instanceof Promise ? await ready : ready
    return this.#conclude(prepared, await this.#insertPrepared(prepared))
  }

  async #insertPrepared(prepared: Prepared): Promise<Inserted> {
    const [inserted] = await Promise.all([this.#batch.add(prepared), this.#queues.know(prepared.insertion.task.queue)])
    return inserted
  }

  #insertOne(stamped: Prepared['stamped']): Promise<Inserted> {
    return this.#insertPrepared({ insertion: stamped(this.#session.time.now()), onMismatch: 'existing', stamped })
  }

  /** Submits inside the caller's transaction: everything up to the write happens synchronously. */
  #inTransaction(item: SubmitItem, tx: unknown): Promise<Task> {
    try {
      if (item.options.coalesce !== undefined)
        throw new HoldfastError(
          'INVALID_OPTION',
          'tx cannot be used with coalesce: a trigger may change another task',
          {
            field: 'tx',
          },
        )
      const prepared = this.#prepare(item, this.#newCall())
      if (prepared instanceof Promise) {
        prepared.catch(() => {})
        throw new HoldfastError(
          'INVALID_OPTION',
          'tx cannot be used with a schema that validates asynchronously: the transaction would be over',
          { field: 'tx' },
        )
      }
      const { store, time } = this.#session
      mustHaveTransactions(store)
      const inserting = store
        .insert([prepared.insertion], { tx, now: null, expected: time.now() })
        .catch(async (error: unknown) => {
          await this.#stampAgain([prepared], error)
          return store.insert([prepared.insertion], { tx, now: null })
        })
      // Not awaited: the caller's transaction may hold the lock that this write needs.
      this.#queues.know(prepared.insertion.task.queue).catch(() => {})
      return inserting.then(([inserted]) => this.#conclude(prepared, inserted!))
    } catch (error) {
      return Promise.reject(error)
    }
  }

  /** Each item has its own result; a bad one does not stop the others. */
  async many(items: readonly SubmitItem[]): Promise<SubmitResult[]> {
    const results: SubmitResult[] = new Array(items.length)
    const all = [...items.entries()].map(([at, item]) => ({ at, item }))
    const triggers = all.filter(({ item }) => item.options.coalesce !== undefined)
    const others = triggers.length === 0 ? all : all.filter(({ item }) => item.options.coalesce === undefined)
    await Promise.all([this.#chunks(others, results), this.#triggers(triggers, results)])
    return results
  }

  /** Begun in the order of the list, which decides which input of a key is the latest. */
  async #triggers(items: readonly Placed[], results: SubmitResult[]): Promise<void> {
    let next = 0
    const lane = async (): Promise<void> => {
      for (let one = items[next++]; one !== undefined; one = items[next++]) {
        const { at, item } = one
        results[at] = await this.#coalescer.submit(item).then(
          (task): SubmitResult => ({ ok: true, task }),
          (error: unknown): SubmitResult => ({ ok: false, error: asHoldfastError(error) }),
        )
      }
    }
    await Promise.all(Array.from({ length: Math.min(TRIGGERS_IN_FLIGHT, items.length) }, lane))
  }

  async #chunks(items: readonly Placed[], results: SubmitResult[]): Promise<void> {
    const op = newOp()
    let next = 0
    const lane = async (): Promise<void> => {
      while (next < items.length) {
        const start = next
        next += start === 0 ? FIRST_CHUNK : CHUNK
        await this.#chunk(items.slice(start, next), op, results)
      }
    }
    const lanes: Promise<void>[] = []
    while (lanes.length < CHUNKS_IN_FLIGHT && next < items.length) {
      lanes.push(lane())
      // Drivers send on the next turn of the event loop: without it the store would wait until all chunks are prepared.
      if (next < items.length) await new Promise<void>(soon)
    }
    await Promise.all(lanes)
  }

  async #chunk(items: readonly Placed[], op: string, results: SubmitResult[]): Promise<void> {
    const good: { readonly at: number; readonly prepared: Prepared }[] = []
    // One instant per chunk, so that equal values can be written once.
    const call = { op, now: this.#session.time.now() }
    for (const { at, item } of items) {
      try {
        const ready = this.#prepare(item, call)
        good.push({ at, prepared: ready instanceof Promise ? await ready : ready })
      } catch (error) {
        results[at] = { ok: false, error: asHoldfastError(error) }
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
        this.#insert(good.map(({ prepared }) => prepared)),
        ...[...queues].map((queue) => this.#queues.know(queue)),
      ])
      for (const [i, { at, prepared }] of good.entries()) results[at] = this.#result(prepared, inserted[i]!)
    } catch (error) {
      // The store refused the insert and wrote nothing: perhaps because of a single item.
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

  /** Synchronous unless the schema is asynchronous. */
  #prepare(item: SubmitItem, call: Call): Prepared | Promise<Prepared> {
    const checked = checkSchema(item.definition.input, item.input, 'input', 'INVALID_TASK')
    return checked instanceof Promise ? checked.then(() => this.#build(item, call)) : this.#build(item, call)
  }

  #newCall(): Call {
    return { op: newOp(), now: this.#session.time.now() }
  }

  #build({ definition, input, options: given, reserved }: SubmitItem, { op, now }: Call): Prepared {
    const { name, maxPayload, defaults } = this.#session
    const options = withDefaults({ options: defaults }, given)
    const payload = encodePayload(input, 'input', maxPayload)
    const facts = { id: newId(), op, by: name, ...(reserved === undefined ? null : { reserved }) }
    const stamped = (at: Instant): Insertion => {
      const { task, key } = newSubmission(definition.type, payload, options, { ...facts, now: at })
      return key === null || task.idempotencyKey === null
        ? { task }
        : { task, key: { key: task.idempotencyKey, taskId: task.id, hash: hashOf(task.type, payload), ...key } }
    }
    const onMismatch = options.onMismatch ?? (reserved === undefined ? 'error' : 'existing')
    return { insertion: stamped(now), onMismatch, stamped }
  }

  /** The store refused the stamps because its clock differs, and wrote nothing: stamps them again. Rethrows any other error. */
  async #stampAgain(some: readonly Prepared[], error: unknown): Promise<void> {
    if (!isHoldfastError(error, 'STORE_CONFLICT') || error.details['expected'] === undefined) throw error
    const { time } = this.#session
    await time.anchor()
    const now = time.now()
    for (const one of some) one.insertion = one.stamped(now)
  }

  /** Stamps with a fresh estimate of the store's time, and has the store check it where it can. */
  async #insertInTime(some: readonly Prepared[]): Promise<readonly Inserted[]> {
    const { store, time } = this.#session
    if (time.isOld) {
      await time.freshen()
      const now = time.now()
      for (const one of some) one.insertion = one.stamped(now)
    }
    try {
      return await store.insert(insertionsOf(some), { now: null, expected: time.now() })
    } catch (error) {
      await this.#stampAgain(some, error)
      // Not checked again: if a round trip takes seconds, every estimate is off by that much.
      return store.insert(insertionsOf(some), { now: null })
    }
  }

  async #insert(some: readonly Prepared[]): Promise<readonly Inserted[]> {
    // If any of several tries may have arrived, the outcome is unclear.
    let isUnclear = false
    const insert = async (): Promise<readonly Inserted[]> => {
      try {
        return await this.#insertInTime(some)
      } catch (error) {
        isUnclear ||= !isUnconnected(error)
        throw error
      }
    }
    try {
      return await withPatience(this.#session, insert, { whileRefused: PATIENCE })
    } catch (error) {
      if (!isContactLost(error)) throw error
      const { code, message, details } = error as HoldfastError
      const ids = insertionsOf(some).map(({ task }) => task.id)
      if (!isUnclear) throw new HoldfastError(code, `${message}. Nothing was stored`, { ...details, ids }, error)
      for (const { task } of insertionsOf(some)) this.#remember(task)
      throw new HoldfastError(
        code,
        `${message}. The task may or may not have been stored: submit again with the same id or idempotency key, or the same coalesce key`,
        { ids },
        error,
      )
    }
  }

  #remember({ id, history }: TaskRecord): void {
    this.#unclear.set(id, history[0]!.op)
    for (const oldest of this.#unclear.keys()) {
      if (this.#unclear.size <= MOST_UNCLEAR) break
      this.#unclear.delete(oldest)
    }
  }

  /** The stored task was written by an earlier call of this client whose outcome was reported as unclear: the caller is repeating it. */
  #isRepeat(task: TaskRecord, found: TaskRecord): boolean {
    const op = this.#unclear.get(task.id)
    if (op === undefined || found.history[0]?.op !== op) return false
    return found.type === task.type && found.input === task.input && found.encoding === task.encoding
  }

  #conclude({ insertion: { task, key }, onMismatch }: Prepared, inserted: Inserted): Task {
    if (inserted.outcome === 'clash' && this.#isRepeat(task, inserted.task)) {
      this.#unclear.delete(task.id)
      this.#session.events.submitted(inserted.task)
      return new Task(inserted.task)
    }
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

const insertionsOf = (some: readonly Prepared[]): Insertion[] => some.map(({ insertion }) => insertion)

/** The stored task is from an earlier try of this call whose reply was lost. */
const isOwnWrite = (task: TaskRecord, inserted: Inserted): boolean => {
  const found = inserted.outcome === 'created' ? null : inserted.task
  return found?.id === task.id && found.history[0]?.op === task.history[0]?.op
}

/** Stands for a task that was removed while its key still exists: it has ended, and its details are gone. */
const removedTask = (task: TaskRecord, id: string): TaskRecord => ({ ...task, id, status: 'archived', history: [] })

export const hashOf = (type: string, input: Payload): string =>
  createHash('sha256').update(keySubject(type, input)).digest('base64url')
