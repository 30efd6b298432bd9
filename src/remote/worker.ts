/** A worker over HTTP: claims, renews and finishes through a Holdfast server. */

import { HoldfastError, isHoldfastError } from '../core/errors.ts'
import { isPermanent, RescheduleError, type RescheduleOptions, retryDelay } from '../core/failure.ts'
import { checkInteger } from '../core/submission.ts'
import { type Duration, parseDuration } from '../core/values/durations.ts'
import { checkOptionNames } from '../core/values/option-names.ts'
import { checkSchema, type TaskDefinition } from '../runtime/definition.ts'
import { AbortedError } from '../runtime/handler.ts'
import { type Connection, isPassing, pause } from './connection.ts'
import { failureOf } from './failure.ts'
import { newId } from './ids.ts'
import { payloadFields, type RemoteTask, taskOf } from './task.ts'

/** Options of a worker over HTTP. */
export interface RemoteWorkerOptions {
  /** Unique for every start. Default: made of a random part. */
  readonly id?: string
  /** How many handlers run at once: 1 to 100. Default 10. */
  readonly concurrency?: number
  /** Default ['default']. */
  readonly queues?: readonly string[]
  /** How long a lease lasts without a renewal. Default: that of the store. */
  readonly leaseTtl?: Duration
  /** How long the server waits for work before it answers. Default 20 s; 0 where requests must be short. */
  readonly wait?: Duration
  /** How long running handlers may continue after `stop`. Default 30 s. */
  readonly stopTimeout?: Duration
  /** Called if the end of a run could not be written, or if a claim failed for a permanent reason. */
  readonly onError?: (error: Error) => void
}

/** The context of a handler over HTTP. Steps, `client` and transactions need a worker that connects to the store. */
export interface RemoteContext<Input = unknown> {
  /** Its `input` is as submitted. */
  readonly task: RemoteTask<Input>
  /** Aborts with an AbortedError that says why. */
  readonly signal: AbortSignal
  /** Grows with every claim: pass it along with writes to other systems. */
  readonly fence: number
  /** The number of this run, starting at 1. */
  readonly attempt: number
  /** As histories show it. */
  readonly workerId: string
  /** Sent with the next heartbeat; the last value wins. */
  progress(value: unknown): void
  /** `return ctx.reschedule('60s')`: durable sleep. */
  reschedule(delay: Duration, options?: RescheduleOptions): RescheduleError
}

/** Runs a task that was claimed over HTTP. Its return value is the output. */
export type RemoteHandler<Input = unknown, Output = unknown, Raw = Input> = (
  input: Input,
  ctx: RemoteContext<Raw>,
) => Output | RescheduleError | Promise<Output | RescheduleError>

interface Lease {
  readonly task: object
  readonly token: string
  readonly fence: number
  readonly heartbeatEvery: number
}

interface Registered {
  readonly definition: TaskDefinition | null
  readonly run: RemoteHandler
}

const OPTIONS: ReadonlySet<string> = new Set<keyof RemoteWorkerOptions>([
  'id',
  'concurrency',
  'queues',
  'leaseTtl',
  'wait',
  'stopTimeout',
  'onError',
])
/** The pause after a claim that found nothing, if the server does not wait for work. */
const REST = 1_000
/** The pause after a claim that failed. */
const REST_AFTER_ERROR = 2_000

/** Claims and runs tasks over HTTP. */
export class RemoteWorker {
  readonly id: string
  readonly #connection: Connection
  readonly #options: RemoteWorkerOptions
  readonly #concurrency: number
  readonly #wait: number
  readonly #stopTimeout: number
  readonly #handlers = new Map<string, Registered>()
  readonly #running = new Map<Promise<void>, AbortController>()
  readonly #stopping = new AbortController()

  constructor(connection: Connection, options: RemoteWorkerOptions) {
    checkOptionNames(options, OPTIONS, 'worker')
    this.id = options.id ?? `remote/${newId()}`
    this.#connection = connection
    this.#options = options
    this.#concurrency = checkInteger(options.concurrency ?? 10, 'concurrency', 1, 100)
    this.#wait = parseDuration(options.wait ?? '20s', 'wait')
    this.#stopTimeout = parseDuration(options.stopTimeout ?? '30s', 'stopTimeout')
  }

  handle<Input, Parsed, Output>(
    definition: TaskDefinition<Input, Parsed, Output>,
    handler: RemoteHandler<Parsed, Output, Input>,
  ): this
  handle(type: string, handler: RemoteHandler): this
  handle(type: string | TaskDefinition, handler: RemoteHandler): this {
    const name = typeof type === 'string' ? type : type.type
    if (this.#handlers.has(name))
      throw new HoldfastError('INVALID_OPTION', `type '${name}' already has a handler`, { field: 'type' })
    this.#handlers.set(name, { definition: typeof type === 'string' ? null : type, run: handler })
    return this
  }

  /** Claims and runs tasks until `stop`, or until `signal` aborts; running handlers then get `stopTimeout`. */
  async run({ signal }: { readonly signal?: AbortSignal } = {}): Promise<void> {
    const stop = (): void => this.#stopping.abort()
    if (signal?.aborted) stop()
    signal?.addEventListener('abort', stop, { once: true })
    await this.#work(() => false)
    signal?.removeEventListener('abort', stop)
  }

  /** Runs tasks until a claim finds none, or for `for` at most. Meant for edge functions that a timer starts. */
  async drain(options: { readonly for?: Duration } = {}): Promise<void> {
    const limit = options.for === undefined ? null : parseDuration(options.for, 'for')
    const timer = limit === null ? null : setTimeout(() => this.#stopping.abort(), limit)
    await this.#work(() => true)
    if (timer !== null) clearTimeout(timer)
  }

  /** Claims nothing more. `run` resolves when the running handlers have ended. */
  stop(): void {
    this.#stopping.abort()
  }

  async #work(endsWhenEmpty: () => boolean): Promise<void> {
    if (this.#handlers.size === 0)
      throw new HoldfastError('NO_HANDLER', 'this worker has no handlers: call handle(type, handler) first')
    const { signal } = this.#stopping
    while (!signal.aborted) {
      const free = this.#concurrency - this.#running.size
      if (free === 0) {
        await Promise.race([...this.#running.keys(), untilAborted(signal)])
        continue
      }
      const leases = await this.#claim(free, endsWhenEmpty() ? 0 : this.#wait)
      for (const lease of leases) this.#start(lease)
      if (leases.length > 0 || signal.aborted) continue
      if (this.#running.size === 0 && endsWhenEmpty()) break
      if (endsWhenEmpty()) await Promise.race([...this.#running.keys(), untilAborted(signal)])
      else if (this.#wait === 0) await pause(REST, signal).catch(() => {})
    }
    await this.#settle()
  }

  async #claim(limit: number, wait: number): Promise<readonly Lease[]> {
    const { queues, leaseTtl } = this.#options
    const body = {
      workerId: this.id,
      types: [...this.#handlers.keys()],
      limit,
      wait: wait === 0 ? 0 : `${wait}ms`,
      ...(queues === undefined ? null : { queues }),
      ...(leaseTtl === undefined ? null : { leaseTtl }),
    }
    const { signal } = this.#stopping
    try {
      // Aborted when the worker stops. The server then releases what it claims for this request.
      return (await this.#connection.call<{ leases: Lease[] }>('POST', '/claim', body, { signal })).leases
    } catch (error) {
      if (signal.aborted) return []
      if (!(error instanceof HoldfastError) || !isPassing(error)) throw error
      this.#options.onError?.(error)
      await pause(REST_AFTER_ERROR, signal).catch(() => {})
      return []
    }
  }

  #start(lease: Lease): void {
    const aborting = new AbortController()
    const run = this.#run(lease, taskOf(lease.task), aborting)
      .catch((error: Error) => this.#options.onError?.(error))
      .then(() => void this.#running.delete(run))
    this.#running.set(run, aborting)
  }

  async #run(lease: Lease, task: RemoteTask, aborting: AbortController): Promise<void> {
    const abort = (kind: ConstructorParameters<typeof AbortedError>[0]): void => aborting.abort(new AbortedError(kind))
    const beat = new Heartbeat(this.#connection, lease, task.id, abort)
    const limit = task.timeout === null ? null : setTimeout(() => abort('timeout'), task.timeout)
    const { signal } = aborting
    let verb: string
    let body: Record<string, unknown>
    try {
      const { definition, run } = this.#handlers.get(task.type)!
      const { value } = await checkSchema(definition?.input ?? null, task.input, 'input', 'INVALID_TASK')
      const ctx: RemoteContext = {
        task,
        signal,
        fence: lease.fence,
        attempt: task.attempts,
        workerId: this.id,
        progress: (reported) => beat.report(reported),
        reschedule: (delay, options) => new RescheduleError(delay, options),
      }
      // A handler that ignores its signal must not hold up the write of its timeout.
      const output = await Promise.race([run(value, ctx), rejectionOf(signal)])
      ;[verb, body] = output instanceof RescheduleError ? rescheduling(output) : ['complete', outputFields(output)]
    } catch (error) {
      const kind = signal.aborted && signal.reason instanceof AbortedError ? signal.reason.kind : null
      if (kind === 'lease-lost') return
      if (error instanceof RescheduleError) [verb, body] = rescheduling(error)
      else if (kind === 'shutdown') [verb, body] = ['release', {}]
      else [verb, body] = ['fail', failing(kind === 'timeout' ? timedOut(task.timeout!) : error)]
    } finally {
      beat.stop()
      if (limit !== null) clearTimeout(limit)
    }
    // The token makes a repeat recognisable.
    const path = `/tasks/${task.id}/${verb}`
    await this.#connection.call('POST', path, { token: lease.token, ...body }, { isRepeatable: true })
  }

  async #settle(): Promise<void> {
    if (this.#running.size === 0) return
    const timer = setTimeout(() => {
      for (const aborting of this.#running.values()) aborting.abort(new AbortedError('shutdown'))
    }, this.#stopTimeout)
    while (this.#running.size > 0) await Promise.all(this.#running.keys())
    clearTimeout(timer)
  }
}

/** Renews the lease of one run while it lasts. */
class Heartbeat {
  readonly #timer: ReturnType<typeof setInterval>
  #progress: { readonly progress?: unknown } = {}

  constructor(
    connection: Connection,
    { token, heartbeatEvery }: Lease,
    id: string,
    abort: (kind: 'cancelled' | 'lease-lost') => void,
  ) {
    // The run continues after two lost answers. After a third its lease may have lapsed.
    let heardAt = performance.now()
    this.#timer = setInterval(() => {
      const body = { token, ...this.#progress }
      const sentAt = performance.now()
      if (sentAt - heardAt > 3 * heartbeatEvery) return abort('lease-lost')
      connection.call<{ cancelRequested: boolean }>('POST', `/tasks/${id}/heartbeat`, body).then(
        ({ cancelRequested }) => {
          heardAt = sentAt
          if (cancelRequested) abort('cancelled')
        },
        (error: unknown) => {
          if (isHoldfastError(error, 'STALE_LEASE') || isHoldfastError(error, 'TASK_NOT_FOUND')) abort('lease-lost')
        },
      )
    }, heartbeatEvery)
  }

  report(progress: unknown): void {
    this.#progress = { progress }
  }

  stop(): void {
    clearInterval(this.#timer)
  }
}

const outputFields = (output: unknown): Record<string, unknown> =>
  output === undefined ? {} : payloadFields('output', output)

const rescheduling = ({
  delay,
  at,
  extendExpiration,
  pause: held,
}: RescheduleError): [string, Record<string, unknown>] => [
  'reschedule',
  {
    delay: { milliseconds: at === null ? delay : Math.max(0, at - Date.now()) },
    ...(extendExpiration === 0 ? null : { extendExpiration: { milliseconds: extendExpiration } }),
    ...(held === null ? null : { pause: held }),
  },
]

const failing = (error: unknown): Record<string, unknown> => {
  const delay = retryDelay(error)
  const isInvalid = isHoldfastError(error, 'INVALID_TASK')
  return {
    error: failureOf(error),
    ...(isPermanent(error) || isInvalid ? { permanent: true } : null),
    ...(delay === null ? null : { delay: { milliseconds: delay } }),
  }
}

const timedOut = (timeout: number): Error =>
  Object.assign(new Error(`timed out after ${timeout} ms`), { name: 'TimeoutError' })

const rejectionOf = (signal: AbortSignal): Promise<never> =>
  new Promise((_, fail) => {
    if (signal.aborted) fail(signal.reason)
    // A cancelled handler may still complete. All other endings are written at once.
    signal.addEventListener('abort', () => {
      if ((signal.reason as AbortedError).kind !== 'cancelled') fail(signal.reason)
    })
  })

const untilAborted = (signal: AbortSignal): Promise<void> =>
  new Promise((done) => {
    if (signal.aborted) done()
    signal.addEventListener('abort', () => done(), { once: true })
  })
