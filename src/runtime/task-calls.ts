/** What a caller does with one task that is there: move it, change it, remove it, or run it by hand. */
import { type AmendOptions, runNow } from '../core/amend.ts'
import * as machine from '../core/machine.ts'
import type { Holder } from '../core/task.ts'
import type { Task } from '../core/task-view.ts'
import type { CallOptions } from './abortable.ts'
import type { AnyDefinition, TaskDefinition } from './definition.ts'
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
import type { Queues } from './tasks/queues.ts'
import { type PruneOptions, pruneEnded } from './tasks/retention.ts'

export interface Signalled {
  readonly signal?: AbortSignal | undefined
}

export abstract class TaskCalls {
  protected abstract readonly queues: Queues

  /** Errors of every kind, also those of checking the arguments, come as a rejection. */
  protected abstract run<T>(work: (session: Session) => Promise<T>, options?: Signalled): Promise<T>

  // ── moving ───────────────────────────────────────────────────────────────────────────────────────────────────

  /** A pending task is cancelled; a running one is asked to stop. A cancelled one: success. */
  cancel(id: string, options: CallOptions & { readonly reason?: string } = {}): Promise<Task> {
    return this.run((session) => cancelById(session, id, options.reason), options)
  }

  /** These ids, or all pending and running tasks that match. Each has its own result. */
  cancelMany(which: readonly string[] | TaskQuery, options: CancelManyOptions = {}): Promise<EachResult[]> {
    return this.run((session) => cancelMany(session, which, options))
  }

  /** A failed task with retries left, a cancelled one, or a running one, which loses its lease. */
  retry(id: string, options?: CallOptions): Promise<Task> {
    return this.run((session) => moveById(session, id, ['retry'], machine.retry), options)
  }

  /** Changes a task that waits: its priority, when it is due or expires, its input or tags. CANNOT_AMEND once it runs or has ended. */
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

  /** A task that waits for its time is due now. */
  runNow(id: string, options?: CallOptions): Promise<Task> {
    return this.run((session) => moveById(session, id, ['amend'], runNow), options)
  }

  /** A pending task expires now. */
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

  /** A task that has ended, and its idempotency key, are gone. */
  delete(id: string, options?: CallOptions): Promise<void> {
    return this.run((session) => deleteById(session, id), options)
  }

  /** Removes tasks that ended long enough ago, in small batches. How many it was. */
  prune(options: PruneOptions): Promise<number> {
    return this.run((session) => pruneEnded(session, options))
  }

  // ── driving tasks by hand ────────────────────────────────────────────────────────────────────────────────────

  /** This very task, for a caller who drives it himself. The same worker again gets the same lease. */
  claim(id: string, { signal, ...options }: ClaimOptions & CallOptions): Promise<TaskLease> {
    return this.run((session) => claimById(session, this.queues, id, options), { signal })
  }

  /** The first due task of a queue, or null. */
  async claimNext(options: ClaimNextOptions & CallOptions): Promise<TaskLease | null> {
    const [lease = null] = await this.claimMany({ ...options, limit: 1 })
    return lease
  }

  /** The first due tasks of a queue, in one look: up to `limit`, each under a lease of its own. */
  claimMany({ signal, ...options }: ClaimNextOptions & CallOptions & { readonly limit: number }): Promise<TaskLease[]> {
    return this.run((session) => claimDue(session, this.queues, options), { signal })
  }

  /** A lease by its token, or (weaker) by the id of the worker that has it. */
  lease(id: string, holder: Holder, options?: CallOptions): Promise<TaskLease> {
    return this.run((session) => leaseOf(session, id, holder), options)
  }
}
