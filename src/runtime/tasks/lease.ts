/** A lease that was claimed by hand. There is no heartbeat: the caller renews it or lets it lapse. */

import { HoldfastError } from '../../core/errors.ts'
import { isPermanent, RescheduleError, type RescheduleOptions } from '../../core/failure.ts'
import { deadlineOf } from '../../core/guards.ts'
import * as machine from '../../core/machine.ts'
import { Task } from '../../core/observe/task-view.ts'
import type { Change, Holder, Lease, TaskRecord } from '../../core/task.ts'
import { type Duration, parseDuration } from '../../core/values/durations.ts'
import { takeOutput } from '../../core/values/output.ts'
import { encodePayload } from '../../core/values/payload.ts'
import type { Renewal, Renewed } from '../../store/store.ts'
import { abortable, type CallOptions } from '../abortable.ts'
import { pause } from '../clock.ts'
import { waitBefore, withPatience } from '../patience.ts'
import { pauseQueueOf } from '../queues/pause-queue.ts'
import type { Session } from '../session.ts'
import { LeaseSteps } from './lease-steps.ts'
import { read, settle } from './settle.ts'
import { tellIfStale } from './stale-writes.ts'

/** A task that was claimed by hand, and what its holder can do with it. */
export class TaskLease {
  /** The task as claimed. */
  readonly task: Task
  readonly #session: Session
  readonly #record: TaskRecord
  readonly #holder: Holder

  constructor(session: Session, record: TaskRecord, holder: Holder) {
    this.#session = session
    this.#record = record
    this.#holder = holder
    this.task = new Task(record)
  }

  /** Proves that this is the holder. null for a lease that was opened by its worker id. */
  get token(): string | null {
    return 'token' in this.#holder ? this.#holder.token : null
  }

  /** Who holds it, as of the claim. */
  get workerId(): string | null {
    return this.#record.lease?.workerId ?? null
  }

  /** Pass it along with writes to other systems, so that they can refuse a stale holder. */
  get fence(): number {
    return this.#record.attempts
  }

  /** Durable steps of this task, for a caller that drives it by hand. */
  get steps(): LeaseSteps {
    return new LeaseSteps(this.#session, this.#record, this.#holder)
  }

  /** A repeated call with the same lease succeeds. */
  async complete(output: unknown = null, { signal }: CallOptions = {}): Promise<Task> {
    if (signal !== undefined) return this.#until(signal, (lease) => lease.complete(output))
    // The caller still holds the task, so an output that cannot be stored is an error here.
    const taken = takeOutput(output, this.#session.maxPayload)
    return this.#move(['complete'], (task) => machine.complete(task, this.#holder, taken, this.#session.time.now()))
  }

  /** Ends the run as failed, as if a handler had thrown `error`: a PermanentError uses no retry. */
  fail(error: unknown, { signal }: CallOptions = {}): Promise<Task> {
    if (signal !== undefined) return this.#until(signal, (lease) => lease.fail(error))
    const permanent = isPermanent(error)
    const random = this.#session.random()
    return this.#move(['fail'], (task) =>
      machine.fail(task, this.#holder, { error, permanent, now: this.#session.time.now(), random }),
    )
  }

  /** Durable sleep: gives the task back until `delay` has passed, without a retry. */
  async reschedule(delay: Duration, { signal, ...options }: RescheduleOptions & CallOptions = {}): Promise<Task> {
    if (signal !== undefined) return this.#until(signal, (lease) => lease.reschedule(delay, options))
    const wish = new RescheduleError(delay, options)
    const { delay: wait, extendExpiration } = wish
    if (wish.pause !== null) await pauseQueueOf(this.#session, this.#record, wish)
    return this.#move(['reschedule'], (task) =>
      machine.reschedule(task, this.#holder, { delay: wait, extendExpiration, now: this.#session.time.now() }),
    )
  }

  /** Returns the task to the queue without charging a retry. */
  release({ signal }: CallOptions = {}): Promise<Task> {
    if (signal !== undefined) return this.#until(signal, (lease) => lease.release())
    return this.#move(['release'], (task) => machine.release(task, this.#holder, this.#session.time.now()))
  }

  /**
   * Renews the lease for its original length or for `leaseTtl`, but never past the run's timeout plus one lease length. Resolves
   * with whether a cancel was requested. STALE_LEASE if the lease is lost.
   */
  async renew({
    signal,
    ...options
  }: CallOptions & { readonly progress?: unknown; readonly leaseTtl?: Duration } = {}): Promise<{
    cancelRequested: boolean
  }> {
    if (signal !== undefined) return this.#until(signal, (lease) => lease.renew(options))
    const task = await this.#current()
    const { token, ttl } = this.#held(task)
    const progress =
      options.progress === undefined
        ? undefined
        : encodePayload(options.progress, 'progress', this.#session.maxPayload).text
    const leaseTtl = options.leaseTtl === undefined ? ttl : parseDuration(options.leaseTtl, 'leaseTtl')
    const deadline = deadlineOf(task)
    const renewal = {
      id: task.id,
      token,
      leaseTtl,
      ...(deadline === null ? null : { notAfter: deadline }),
      ...(progress === undefined ? null : { progress }),
    }
    const renewed = await renewUnlocked(this.#session, renewal)
    if (renewed === 'lost')
      throw this.#refused(
        new HoldfastError('STALE_LEASE', `the lease on task ${this.#record.id} was lost`, { id: this.#record.id }),
      )
    return { cancelRequested: renewed === 'cancel' }
  }

  /** The same lease, with a store that refuses every call once the signal has aborted. */
  #until<T>(signal: AbortSignal, work: (lease: TaskLease) => Promise<T>): Promise<T> {
    return abortable(this.#session, signal, (session) => work(new TaskLease(session, this.#record, this.#holder)))
  }

  #held(task: TaskRecord): Lease {
    try {
      return machine.holding(task, this.#holder)
    } catch (error) {
      throw this.#refused(error)
    }
  }

  #refused(error: unknown): unknown {
    tellIfStale(error, this.#record)
    return error
  }

  /** A token needs no read, because the store compares it. A worker id alone must be looked up. */
  async #current(): Promise<TaskRecord> {
    if ('token' in this.#holder && this.#record.lease?.token === this.#holder.token) return this.#record
    return read(this.#session, this.#record.id)
  }

  async #move(moves: readonly machine.MoveName[], decide: (task: TaskRecord) => Change): Promise<Task> {
    const op = this.#record.lease?.token ?? this.token ?? ''
    try {
      return new Task(await settle(this.#session, this.#record, { op, moves, decide }))
    } catch (error) {
      throw this.#refused(error)
    }
  }
}

const TRIES = 5

/** A row that a transaction has locked is usually free again within milliseconds. */
const renewUnlocked = async (session: Session, renewal: Renewal): Promise<Renewed> => {
  for (let tries = 0; tries < TRIES; tries++) {
    const [renewed] = await withPatience(session, () => session.store.renew([renewal], null))
    if (renewed !== 'locked') return renewed!
    await pause(session.clock, waitBefore(tries, session))
  }
  throw new HoldfastError(
    'STORE_BUSY',
    `task ${renewal.id} is locked by a transaction, so its lease was not renewed. Try again, or end that transaction`,
    { id: renewal.id },
  )
}
