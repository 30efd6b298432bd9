/**
 * One call of a batch handler. Each of its tasks is an attempt with its own lease, middleware, schema and outcome. The handlers of the attempts
 * join here. The batch handler is called when each attempt has joined, or has ended without it.
 */

import { HoldfastError } from '../../core/errors.ts'
import { Task } from '../../core/observe/task-view.ts'
import { formatDuration } from '../../core/values/durations.ts'
import { isInstance } from '../../core/values/error-facts.ts'
import type { Client } from '../client.ts'
import type { AbortReason, BatchContext, BatchHandler, Handler, TaskContext } from '../handler.ts'
import { type Logger, withFacts } from '../telemetry/logger.ts'
import { AbortOnce } from './abort-once.ts'
import type { Attempt, AttemptHost } from './attempt.ts'

interface Joined {
  readonly task: Task
  resolve(value: unknown): void
  reject(error: unknown): void
}

/** The handler of each task of a batch. */
export const joinBatch: Handler = (input, ctx) => {
  // The worker calls handlers with its attempts.
  const attempt = ctx as Attempt
  return attempt.batch!.join(attempt, input)
}

export class BatchRun implements BatchContext {
  readonly members: readonly Attempt[]
  /** The shortest timeout of its tasks; null if none has one. */
  readonly timeout: number | null
  /** Members that have not settled: they hold the slot. */
  running: number
  readonly #handler: BatchHandler
  readonly #host: AttemptHost
  readonly #absent: Set<Attempt>
  readonly #joined = new Map<Attempt, Joined>()
  #isCalled = false
  readonly #abort = new AbortOnce()

  constructor(members: readonly Attempt[], handler: BatchHandler, host: AttemptHost, timeout: number | null) {
    this.members = members
    this.timeout = timeout
    this.running = members.length
    this.#handler = handler
    this.#host = host
    this.#absent = new Set(members)
  }

  // ── what the handler sees ────────────────────────────────────────────────────────────────────────────────────

  get client(): Client {
    return this.#host.client
  }

  get signal(): AbortSignal {
    return this.#abort.signal
  }

  get workerId(): string {
    return this.#host.workerId
  }

  get log(): Logger {
    return withFacts(this.#host.logger, { type: this.#type, tasks: this.#joined.size })
  }

  /** A task that was revoked and claimed again while it waited is in the batch twice, each time with its own fence. */
  of(task: { readonly id: string }): TaskContext {
    const { id } = task
    const joined = [...this.#joined].find(([, one]) => one.task === task)
    const attempt = joined?.[0] ?? this.members.findLast(({ record }) => record.id === id)
    if (attempt !== undefined) return attempt
    throw new HoldfastError('INVALID_OPTION', `task ${id} is not in this batch`, { field: 'task', id })
  }

  // ── what its attempts report ─────────────────────────────────────────────────────────────────────────────────

  /** Resolves with the result of this task. */
  join(attempt: Attempt, input: unknown): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.#joined.set(attempt, { task: Task.withInput(attempt.record, input), resolve, reject })
      this.#absent.delete(attempt)
      this.#callWhenComplete()
    })
  }

  /** An attempt may end without the handler: its input did not fit the schema, or a middleware did not call it. */
  settled(attempt: Attempt): void {
    if (this.#absent.delete(attempt)) this.#callWhenComplete()
  }

  /** A task that is cancelled or lost does not abort the others. */
  told(reason: AbortReason): void {
    const isForAll = reason === 'timeout' || reason === 'shutdown'
    if (!isForAll && this.members.some(({ abortedFor, isSettled }) => abortedFor === null && !isSettled)) return
    this.#abort.abort(reason)
  }

  get #type(): string {
    return this.members[0]!.record.type
  }

  #callWhenComplete(): void {
    if (this.#absent.size > 0 || this.#joined.size === 0 || this.#isCalled) return
    this.#isCalled = true
    // In the order of the claim; a schema or a middleware may have delayed some.
    const joined = this.members.flatMap((member) => this.#joined.get(member) ?? [])
    void this.#call(joined)
  }

  async #call(joined: readonly Joined[]): Promise<void> {
    try {
      const tasks = joined.map(({ task }) => task)
      const results: unknown = await this.#host.outside(() => this.#handler(tasks, this))
      if (!Array.isArray(results) || results.length !== tasks.length)
        throw wrongLength(this.#type, results, tasks.length)
      for (const [i, { resolve, reject }] of joined.entries()) {
        const result: unknown = results[i]
        if (isInstance(result, Error)) reject(result)
        else resolve(result)
      }
    } catch (error) {
      for (const { reject } of joined) reject(error)
    }
  }
}

const wrongLength = (type: string, results: unknown, tasks: number): HoldfastError => {
  const got = Array.isArray(results) ? `${results.length} results` : 'no array of results'
  return new HoldfastError(
    'INVALID_TASK',
    `the batch handler of '${type}' returned ${got} for ${tasks} tasks: it must return one for each, in their order`,
    { type },
  )
}

/** Another task of the batch had less time. */
export const timedOutWithBatch = (timeout: number): Error =>
  Object.assign(new Error(`timed out after ${formatDuration(timeout)}, the shortest timeout of its batch`), {
    name: 'TimeoutError',
  })
