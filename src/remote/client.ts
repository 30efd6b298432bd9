/** A client for programs without access to the store: browsers, edge functions, other clouds. Needs `fetch` and nothing else. */

import { type Code, HoldfastError, isHoldfastError } from '../core/errors.ts'
import type { SubmitOptions } from '../core/submission.ts'
import { type Duration, parseDuration } from '../core/values/durations.ts'
import { errorLine } from '../core/values/error-line.ts'
import { checkOptionNames } from '../core/values/option-names.ts'
import {
  checkSchema,
  type InputFor,
  type OutputFor,
  type TypeOrDefinition,
  withDefaults,
} from '../runtime/definition.ts'
import { Connection, pause, type RemoteOptions } from './connection.ts'
import { newId } from './ids.ts'
import { payloadFields, type RemoteTask, taskOf } from './task.ts'
import { RemoteWorker, type RemoteWorkerOptions } from './worker.ts'

/** Options of any call over HTTP. */
export interface CallOptions {
  /** When it aborts, the call rejects with ABORTED. What the server has begun may still happen. */
  readonly signal?: AbortSignal
}

/** Options of `wait`. */
export interface RemoteWaitOptions extends CallOptions {
  /** Give up after this long. The task itself continues. */
  readonly timeout?: Duration
}

/** One task of `submitMany`: its type, its input and its options. */
export interface RemoteSubmitItem {
  /** Which handler runs it. */
  readonly type: TypeOrDefinition
  /** JSON, or bytes. */
  readonly input: unknown
  /** As of `submit`; those given to `submitMany` apply where these say nothing. */
  readonly options?: SubmitOptions
}

/** The result of one task of `submitMany`: the task, or the error that refused it. */
export type RemoteSubmitResult = { readonly task: RemoteTask } | { readonly error: HoldfastError }

/** Filters and limits of `list`. */
export interface RemoteListOptions extends CallOptions {
  /** A status or a view, or several: 'failed', 'ready', 'retrying', … Archived tasks are left out unless asked for. */
  readonly status?: string | readonly string[]
  /** Of this type. */
  readonly type?: TypeOrDefinition
  /** In this queue. */
  readonly queue?: string
  /** Of this group. */
  readonly group?: string
  /** How many a page has at most. */
  readonly limit?: number
  /** The `cursor` of the page before. */
  readonly cursor?: string
  /** By creation. Default 'newest'. */
  readonly order?: 'newest' | 'oldest'
}

const SOONEST = 100
const LATEST = 2_000

/** The code that `wait` throws for a task that did not complete, by status. */
const ENDED: Readonly<Record<string, Code>> = {
  failed: 'TASK_FAILED',
  cancelled: 'TASK_CANCELLED',
  expired: 'TASK_EXPIRED',
  archived: 'TASK_ARCHIVED',
}

/** A queue that is reached over HTTP: submits, reads, cancels, signals and claims. */
export class RemoteClient {
  readonly #connection: Connection

  constructor(options: RemoteOptions) {
    this.#connection = new Connection(options)
  }

  /**
   * Resolves when the task is durable. After a failure it is sent again under the same id, or under your idempotency key, so that it is stored once.
   * A token that may not read needs an idempotency key to learn that a lost answer was a success.
   */
  async submit<T extends TypeOrDefinition>(
    type: T,
    input: InputFor<T>,
    { signal, ...options }: SubmitOptions & CallOptions = {},
  ): Promise<RemoteTask<InputFor<T>, OutputFor<T>>> {
    const isOurs = options.id === undefined && options.coalesce === undefined && options.idempotencyKey === undefined
    const id = isOurs ? newId() : options.id
    const body = { ...(await bodyOf(type, input, options)), ...(id === undefined ? null : { id }) }
    const isRepeatable = isOurs || options.idempotencyKey !== undefined
    try {
      return taskOf(await this.#connection.call('POST', '/tasks', body, { signal, isRepeatable }))
    } catch (error) {
      // Only an earlier try whose answer was lost can have used this id.
      if (isOurs && isHoldfastError(error, 'ALREADY_EXISTS')) return this.#get<T>(id!, { signal })
      throw error
    }
  }

  /** Submits up to 1,000 tasks. Each has its own result, in order. The request is repeated after a failure only if every item has an idempotency key. */
  async submitMany(items: readonly RemoteSubmitItem[], { signal }: CallOptions = {}): Promise<RemoteSubmitResult[]> {
    const tasks = await Promise.all(items.map(({ type, input, options = {} }) => bodyOf(type, input, options)))
    const isRepeatable = items.every(({ options }) => options?.idempotencyKey !== undefined)
    const { results } = await this.#connection.call<{ results: RawResult[] }>(
      'POST',
      '/tasks/batch',
      { tasks },
      { signal, isRepeatable },
    )
    return results.map((result) =>
      'task' in result
        ? { task: taskOf(result.task) }
        : { error: new HoldfastError(result.error.code, result.error.message, result.error.details) },
    )
  }

  /** TASK_NOT_FOUND when no task has this id. */
  get(id: string, options?: CallOptions): Promise<RemoteTask>
  get<T extends TypeOrDefinition>(
    type: T,
    id: string,
    options?: CallOptions,
  ): Promise<RemoteTask<InputFor<T>, OutputFor<T>>>
  async get(what: TypeOrDefinition, ...more: readonly unknown[]): Promise<RemoteTask> {
    if (typeof more[0] !== 'string') return this.#get(what as string, more[0] as CallOptions | undefined)
    return mustBeOf(what, await this.#get(more[0], more[1] as CallOptions | undefined))
  }

  #get<T extends TypeOrDefinition>(
    id: string,
    { signal }: { readonly signal?: AbortSignal | undefined } = {},
  ): Promise<RemoteTask<InputFor<T>, OutputFor<T>>> {
    return this.#connection
      .call<object>('GET', `/tasks/${encodeURIComponent(id)}`, undefined, { signal })
      .then(taskOf) as Promise<RemoteTask<InputFor<T>, OutputFor<T>>>
  }

  /** A page, newest first, without histories. */
  async list({ signal, status, type, ...query }: RemoteListOptions = {}): Promise<{
    readonly tasks: readonly RemoteTask[]
    readonly cursor: string | null
  }> {
    const wanted = {
      ...query,
      fields: 'all',
      ...(status === undefined ? null : { status: [status].flat().join(',') }),
      ...(type === undefined ? null : { type: nameOf(type) }),
    }
    const words = new URLSearchParams(
      Object.entries(wanted).map(([name, value]) => [name, String(value)] as [string, string]),
    )
    type Page = { tasks: object[]; cursor: string | null }
    const { tasks, cursor } = await this.#connection.call<Page>('GET', `/tasks?${words}`, undefined, { signal })
    return { tasks: tasks.map((task) => taskOf(task)), cursor }
  }

  /** The output of the task when it has completed. Throws TASK_FAILED, TASK_CANCELLED or TASK_EXPIRED if it ended otherwise. */
  async wait<Output = unknown>(
    task: string | RemoteTask<never, Output> | RemoteTask<unknown, Output>,
    options: RemoteWaitOptions = {},
  ): Promise<Output> {
    const { id, status, archivedFrom, output, outputError, lastError } = await this.waitForEnd(task, options)
    const ended = archivedFrom ?? status
    if (ended !== 'completed') {
      const why = lastError === null ? '' : `: ${errorLine(lastError)}`
      throw new HoldfastError(ENDED[ended]!, `task ${id} is ${ended}${why}`, { id, lastError })
    }
    if (output === null && outputError !== null)
      throw new HoldfastError('OUTPUT_INVALID', `task ${id} is completed, without an output: ${outputError}`, { id })
    return output as Output
  }

  /** The task when it has ended, in whatever status. */
  async waitForEnd(task: string | { readonly id: string }, options: RemoteWaitOptions = {}): Promise<RemoteTask> {
    checkOptionNames(options, ['timeout', 'signal'], 'wait')
    const { timeout, signal } = options
    const id = typeof task === 'string' ? task : task.id
    const until =
      timeout === undefined ? Number.POSITIVE_INFINITY : performance.now() + parseDuration(timeout, 'timeout')
    for (let delay = SOONEST; ; delay = Math.min(delay * 1.5, LATEST)) {
      const found = await this.#get(id, { signal })
      if (found.status !== 'pending' && found.status !== 'running') return found
      const left = until - performance.now()
      if (left <= 0) throw new HoldfastError('WAIT_TIMEOUT', `task ${id} had not ended when the timeout passed`, { id })
      await pause(Math.min(delay, left), signal)
    }
  }

  /** A pending task ends at once. A running one is asked to stop: its signal aborts. */
  cancel(id: string, { signal, ...body }: CallOptions & { readonly reason?: string } = {}): Promise<RemoteTask> {
    return this.#move(id, 'cancel', body, signal, true)
  }

  /** Not repeated after a failure: the first request may have retried the task, which may have failed again. */
  retry(id: string, { signal }: CallOptions = {}): Promise<RemoteTask> {
    return this.#move(id, 'retry', {}, signal, false)
  }

  /** Sends a signal to a task. After a failure it is sent again under the same id, so that it is stored once. */
  signal(
    id: string,
    name: string,
    value?: unknown,
    { signal, signalId = newId() }: CallOptions & { readonly signalId?: string } = {},
  ): Promise<RemoteTask> {
    const body = { name, ...(value === undefined ? null : payloadFields('value', value)), signalId }
    return this.#move(id, 'signal', body, signal, true)
  }

  #move(
    id: string,
    verb: string,
    body: object,
    signal: AbortSignal | undefined,
    isRepeatable: boolean,
  ): Promise<RemoteTask> {
    const path = `/tasks/${encodeURIComponent(id)}/${verb}`
    return this.#connection.call<object>('POST', path, body, { signal, isRepeatable }).then(taskOf)
  }

  /** Claims tasks over HTTP and runs them here. */
  worker(options: RemoteWorkerOptions = {}): RemoteWorker {
    return new RemoteWorker(this.#connection, options)
  }
}

type RawResult =
  | { readonly task: object }
  | { readonly error: { readonly code: Code; readonly message: string; readonly details: Record<string, unknown> } }

const nameOf = (type: TypeOrDefinition): string => (typeof type === 'string' ? type : type.type)

/** Checks the input against the definition's schema and applies its defaults. The unparsed input is sent, because the worker parses it again. */
const bodyOf = async (type: TypeOrDefinition, input: unknown, given: SubmitOptions): Promise<object> => {
  if (typeof type === 'string') return { type, ...payloadFields('input', input), ...given }
  const { value: _ } = await checkSchema(type.input, input, 'input', 'INVALID_TASK')
  return { type: type.type, ...payloadFields('input', input), ...withDefaults(type, given) }
}

const mustBeOf = (what: TypeOrDefinition, task: RemoteTask): RemoteTask => {
  if (task.type === nameOf(what)) return task
  throw new HoldfastError('INVALID_OPTION', `task ${task.id} is a '${task.type}', not a '${nameOf(what)}'`, {
    id: task.id,
    type: task.type,
  })
}
