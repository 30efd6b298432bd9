/** Callers that wait for tasks to end. Moves of this process resolve them at once; for other processes one shared poll covers all of them. */

import { HoldfastError } from '../../core/errors.ts'
import { ended } from '../../core/machine.ts'
import { Task } from '../../core/observe/task-view.ts'
import { isTerminal, type TaskRecord } from '../../core/task.ts'
import { type Duration, parseDuration } from '../../core/values/durations.ts'
import { errorLine } from '../../core/values/error-line.ts'
import { checkOptionNames } from '../../core/values/option-names.ts'
import type { Cancel } from '../clock.ts'
import { withPatience } from '../patience.ts'
import { notFound, type Session } from '../session.ts'

/** Options of `wait`. */
export interface WaitOptions {
  /** Give up after this long. The task itself continues. */
  readonly timeout?: Duration
  /** Ends the waiting; the task goes on. */
  readonly signal?: AbortSignal
}

interface Waiter {
  resolve(task: Task): void
  reject(error: unknown): void
}

const SOONEST = 10
const LATEST = 500

export class Waiting {
  readonly #session: Session
  readonly #waiters = new Map<string, Set<Waiter>>()
  /** Tasks whose end this process saw: one that is not kept can no longer be read. */
  readonly #ended = new Map<string, Task>()
  #cancelLook: Cancel | null = null
  #unsubscribe: Cancel = () => {}
  #delay = SOONEST

  constructor(session: Session) {
    this.#session = session
  }

  /** Resolves with the task when it has ended, in whatever status. */
  async forEnd(id: string, options: WaitOptions = {}): Promise<Task> {
    checkOptionNames(options, ['timeout', 'signal'], 'wait')
    const { timeout, signal } = options
    const limit = timeout === undefined ? null : parseDuration(timeout, 'timeout')
    if (signal?.aborted) throw aborted(id)
    return new Promise<Task>((resolve, reject) => {
      const finish = (how: () => void): void => {
        this.#remove(id, waiter)
        cancel()
        signal?.removeEventListener('abort', onAbort)
        how()
      }
      const waiter: Waiter = {
        resolve: (task) => finish(() => resolve(task)),
        reject: (error) => finish(() => reject(error)),
      }
      const onAbort = (): void => waiter.reject(aborted(id))
      const cancel =
        limit === null
          ? () => {}
          : this.#session.clock.after(limit, () =>
              waiter.reject(
                new HoldfastError('WAIT_TIMEOUT', `task ${id} had not ended when the timeout passed`, { id }),
              ),
            )
      signal?.addEventListener('abort', onAbort, { once: true })
      this.#add(id, waiter)
    })
  }

  close(): void {
    for (const waiters of this.#waiters.values())
      for (const waiter of waiters)
        waiter.reject(new HoldfastError('STORE_CLOSED', 'the client was closed while a call waited'))
  }

  #add(id: string, waiter: Waiter): void {
    if (this.#waiters.size === 0) {
      this.#unsubscribe = this.#session.events.on(({ task }) => {
        if (!isTerminal(task.status) || !this.#waiters.has(task.id)) return
        this.#ended.set(task.id, task)
        this.#soon(0)
      })
    }
    const waiters = this.#waiters.get(id) ?? new Set()
    this.#waiters.set(id, waiters.add(waiter))
    this.#soon(0)
  }

  #remove(id: string, waiter: Waiter): void {
    const waiters = this.#waiters.get(id)
    waiters?.delete(waiter)
    if (waiters?.size === 0) {
      this.#waiters.delete(id)
      this.#ended.delete(id)
    }
    if (this.#waiters.size > 0) return
    this.#unsubscribe()
    this.#cancelLook?.()
    this.#cancelLook = null
  }

  #soon(delay: number): void {
    this.#cancelLook?.()
    if (delay === 0) this.#delay = SOONEST
    this.#cancelLook = this.#session.clock.after(delay, () => void this.#look())
  }

  async #look(): Promise<void> {
    const ids = [...this.#waiters.keys()]
    try {
      const tasks = await withPatience(this.#session, () => this.#session.store.get(ids))
      for (const [i, id] of ids.entries()) this.#tell(id, tasks[i]!)
    } catch (error) {
      for (const id of ids) for (const waiter of this.#waiters.get(id) ?? []) waiter.reject(error)
    }
    if (this.#waiters.size === 0) return
    this.#delay = Math.min(this.#delay * 1.5, LATEST)
    this.#soon(this.#delay)
  }

  #tell(id: string, task: TaskRecord | null): void {
    const waiters = this.#waiters.get(id)
    if (waiters === undefined) return
    const ended = task === null ? this.#ended.get(id) : isTerminal(task.status) ? new Task(task) : null
    if (ended === null) return
    for (const waiter of waiters) ended === undefined ? waiter.reject(notFound(id)) : waiter.resolve(ended)
  }
}

/** Returns the output of a completed task; otherwise throws an error that says how it ended. */
export const outputOf = (task: Task, record: Pick<TaskRecord, 'lastError'> = task): unknown => {
  const status = task.archivedFrom ?? task.status
  if (status === 'completed') {
    if (task.output !== null || task.outputError === null) return task.output
    throw new HoldfastError('OUTPUT_INVALID', `task ${task.id} is completed, without an output: ${task.outputError}`, {
      id: task.id,
    })
  }
  const cause = record.lastError === null ? '' : `: ${errorLine(record.lastError)}`
  const { code } = ended({ id: task.id, status, lease: null, availableAt: task.availableAt } as TaskRecord)
  throw new HoldfastError(code, `task ${task.id} is ${status}${cause}`, { id: task.id, lastError: record.lastError })
}

const aborted = (id: string): HoldfastError =>
  new HoldfastError('ABORTED', `waiting for task ${id} was aborted`, { id })
