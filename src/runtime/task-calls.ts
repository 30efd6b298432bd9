/** Calls on existing tasks: move, amend, remove, or run one by hand. */
import { type AmendOptions, runNow } from '../core/amend.ts'
import * as machine from '../core/machine.ts'
import type { Task } from '../core/observe/task-view.ts'
import type { Holder } from '../core/task.ts'
import type { CallOptions } from './abortable.ts'
import { type PruneOptions, pruneEnded } from './cleanup/retention.ts'
import type { AnyDefinition, TaskDefinition } from './definition.ts'
import type { Queues } from './queues/queues.ts'
import type { Session } from './session.ts'
import { amendById } from './tasks/amend.ts'
import { type CancelManyOptions, cancelMany } from './tasks/cancel-many.ts'
import type { TaskQuery } from './tasks/inspect.ts'
import type { TaskLease } from './tasks/lease.ts'
import type { EachResult } from './tasks/move-each.ts'
import {
  type ClaimNextOptions,
  type ClaimOptions,
  cancelById,
  claimById,
  claimDue,
  deleteById,
  leaseOf,
  moveById,
} from './tasks/operations.ts'
import { type SignalOptions, signalById } from './tasks/signal.ts'

export interface Signalled {
  readonly signal?: AbortSignal | undefined
}

export abstract class TaskCalls {
  protected abstract readonly queues: Queues

  /** All errors are rejections, including those about invalid arguments. */
  protected abstract run<T>(work: (session: Session) => Promise<T>, options?: Signalled): Promise<T>

  // ── moving ───────────────────────────────────────────────────────────────────────────────────────────────────

  /** Cancels a pending task and asks a running one to stop. Succeeds if the task is already cancelled. */
  cancel(id: string, options: CallOptions & { readonly reason?: string } = {}): Promise<Task> {
    return this.run((session) => cancelById(session, id, options.reason), options)
  }

  /** Cancels these ids, or all pending and running tasks that match. Each task has its own result. */
  cancelMany(which: readonly string[] | TaskQuery, options: CancelManyOptions = {}): Promise<EachResult[]> {
    return this.run((session) => cancelMany(session, which, options))
  }

  /** Runs a task again: a failed one with retries left, a cancelled one, or a running one, which loses its lease. */
  retry(id: string, options?: CallOptions): Promise<Task> {
    return this.run((session) => moveById(session, id, ['retry'], machine.retry), options)
  }

  /** Changes a pending task: its priority, due time, expiry, input or tags. CANNOT_AMEND once it runs or has ended. */
  amend(id: string, options: AmendOptions & CallOptions): Promise<Task>
  amend<Input>(
    definition: AnyDefinition<Input, unknown>,
    id: string,
    options: AmendOptions<Input> & CallOptions,
  ): Promise<Task>
  amend(what: string | TaskDefinition, ...more: unknown[]): Promise<Task> {
    type Given = [definition: TaskDefinition | null, id: string, options: AmendOptions & CallOptions]
    const [definition, id, { signal, ...options }] = (
      typeof what === 'string' ? [null, what, ...more] : [what, ...more]
    ) as Given
    return this.run((session) => amendById(session, definition, id, options), { signal })
  }

  /** Makes a scheduled or retrying task due now. */
  runNow(id: string, options?: CallOptions): Promise<Task> {
    return this.run((session) => moveById(session, id, ['amend'], runNow), options)
  }

  /**
   * Sends a signal to a task that is pending or running. It is kept until a `ctx.waitFor` of its handler takes it, and makes a task that waits for
   * it due at once. A repeat with the same `signalId` succeeds and changes nothing.
   */
  signal(
    id: string,
    name: string,
    value?: unknown,
    { signal, ...options }: SignalOptions & CallOptions = {},
  ): Promise<Task> {
    return this.run((session) => signalById(session, id, name, value, options), { signal })
  }

  /** Expires a pending task now. */
  markExpired(id: string, options?: CallOptions): Promise<Task> {
    return this.run((session) => moveById(session, id, ['expire'], machine.expire), options)
  }

  archive(id: string, options?: CallOptions): Promise<Task> {
    const move = (session: Session): Promise<Task> =>
      moveById(session, id, ['archive'], (task, actor) => machine.archive(task, actor))
    return this.run(move, options)
  }

  unarchive(id: string, options?: CallOptions): Promise<Task> {
    return this.run((session) => moveById(session, id, ['unarchive'], machine.unarchive), options)
  }

  /** Deletes a task that has ended, and its idempotency key. */
  delete(id: string, options?: CallOptions): Promise<void> {
    return this.run((session) => deleteById(session, id), options)
  }

  /** Removes tasks that ended long enough ago, in small batches. Resolves with their number. */
  prune(options: PruneOptions): Promise<number> {
    return this.run((session) => pruneEnded(session, options))
  }

  // ── driving tasks by hand ────────────────────────────────────────────────────────────────────────────────────

  /** Claims this task by hand. The same worker gets the same lease again. */
  claim(id: string, { signal, ...options }: ClaimOptions & CallOptions): Promise<TaskLease> {
    return this.run((session) => claimById(session, this.queues, id, options), { signal })
  }

  /** Claims the first due task of a queue; null when none is due. */
  async claimNext(options: ClaimNextOptions & CallOptions): Promise<TaskLease | null> {
    const [lease = null] = await this.claimMany({ ...options, limit: 1 })
    return lease
  }

  /** Claims up to `limit` due tasks of a queue at once. Each has its own lease. */
  claimMany({ signal, ...options }: ClaimNextOptions & CallOptions & { readonly limit: number }): Promise<TaskLease[]> {
    return this.run((session) => claimDue(session, this.queues, options), { signal })
  }

  /** The lease with this token or, less safely, the lease of this worker. */
  lease(id: string, holder: Holder, options?: CallOptions): Promise<TaskLease> {
    return this.run((session) => leaseOf(session, id, holder), options)
  }
}
