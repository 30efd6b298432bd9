/** The handlers of a worker, by type: functions, or modules that run in child processes. */

import { HoldfastError } from '../../core/errors.ts'
import { PermanentError } from '../../core/failure.ts'
import { checkInteger, checkName } from '../../core/submission.ts'
import { parseDuration } from '../../core/values/durations.ts'
import { checkOptionNames } from '../../core/values/option-names.ts'
import { encodePayload, type Payload } from '../../core/values/payload.ts'
import { asDefinition, type TaskDefinition } from '../definition.ts'
import type { BatchHandler, BatchOptions, Handler } from '../handler.ts'
import type { Tracing } from '../telemetry/tracing.ts'
import type { Attempt } from './attempt.ts'
import { joinBatch } from './batch-run.ts'
import { type IsolatedHandler, isIsolated, isolationOf } from './isolate/options.ts'
import type { IsolatedChildren } from './isolate/pool.ts'
import { childFile } from './isolate/start.ts'
import { type Middleware, withMiddleware } from './middleware.ts'
import { mustServe } from './options.ts'

export interface Registered {
  readonly definition: TaskDefinition
  /** The handler as registered. */
  readonly plain: Handler
  /** With middleware and tracing around it. */
  readonly handler: Handler
  readonly isIsolated: boolean
  /** null if its tasks run one by one. */
  readonly batch: BatchHandler | null
}

const LARGEST_BATCH = 1_000

export class Handlers {
  readonly #byType = new Map<string, Registered>()
  #singleTypes: readonly string[] = []
  readonly #middleware: Middleware[] = []
  readonly #tracing: Tracing | null
  readonly #children: IsolatedChildren
  readonly #queues: readonly string[]

  /** `queues` are the queues that the worker serves. */
  constructor(tracing: Tracing | null, children: IsolatedChildren, queues: readonly string[]) {
    this.#tracing = tracing
    this.#children = children
    this.#queues = queues
  }

  get types(): readonly string[] {
    return [...this.#byType.keys()]
  }

  /** The types that are not handled in batches. */
  get singleTypes(): readonly string[] {
    return this.#singleTypes
  }

  of(type: string): Registered {
    return this.#byType.get(type)!
  }

  /** Wraps the handlers of every type, including those that are already registered. */
  use(middleware: Middleware): void {
    if (typeof middleware !== 'function')
      throw new HoldfastError('INVALID_OPTION', 'a middleware must be a function', { field: 'middleware' })
    this.#middleware.push(middleware)
    for (const [type, one] of this.#byType) this.#byType.set(type, { ...one, handler: this.#around(one) })
  }

  #around({ definition: { type }, plain }: Pick<Registered, 'definition' | 'plain'>): Handler {
    const handler = withMiddleware(this.#middleware, plain)
    return this.#tracing?.handler(type, handler) ?? handler
  }

  /** Each type has one handler. */
  add(type: string | TaskDefinition, given: Handler | IsolatedHandler): void {
    const definition = this.#checked(type)
    const isolated = isIsolated(given)
    const handler = isolated ? this.#isolated(definition, given) : given
    mustBeFunction(handler, definition, 'is not a function, nor { module, isolate }')
    this.#register({ definition, plain: handler, isIsolated: isolated, batch: null })
  }

  /** Returns the type, and the checked size and wait of its batches. */
  addBatch(
    type: string | TaskDefinition,
    options: BatchOptions,
    batch: BatchHandler,
  ): { readonly type: string; readonly size: number; readonly wait: number } {
    const definition = this.#checked(type)
    if (isIsolated(batch))
      throw new HoldfastError(
        'NOT_IN_ISOLATION',
        `handleMany of '${definition.type}' cannot be isolated: give it a function, or use handle`,
        { field: 'handler' },
      )
    mustBeFunction(batch, definition, 'is not a function')
    checkOptionNames(options, ['size', 'wait'], 'handleMany')
    const size = checkInteger(options.size, 'size', 1, LARGEST_BATCH)
    const wait = parseDuration(options.wait ?? 0, 'wait')
    this.#register({ definition, plain: joinBatch, isIsolated: false, batch })
    return { type: definition.type, size, wait }
  }

  #checked(type: string | TaskDefinition): TaskDefinition {
    const definition = asDefinition(type)
    checkName(definition.type, 'type')
    mustServe(this.#queues, definition)
    if (this.#byType.has(definition.type))
      throw new HoldfastError('INVALID_OPTION', `'${definition.type}' has a handler already`, { field: 'type' })
    return definition
  }

  #register(one: Omit<Registered, 'handler'>): void {
    const { type } = one.definition
    this.#byType.set(type, { ...one, handler: this.#around(one) })
    if (one.batch === null) this.#singleTypes = [...this.#singleTypes, type]
  }

  /** The parsed input is sent to the child, so it must be JSON. */
  #isolated(definition: TaskDefinition, given: IsolatedHandler): Handler {
    const isolation = isolationOf(given)
    // Checked now, so that a missing file is reported at registration and not by the first task.
    childFile()
    return (input, ctx) => {
      const crossing = definition.input === null ? null : parsedInput(input)
      // The worker calls handlers with its attempts.
      return this.#children.run(isolation, crossing, ctx as Attempt)
    }
  }
}

const mustBeFunction = (handler: unknown, { type }: TaskDefinition, complaint: string): void => {
  if (typeof handler === 'function') return
  throw new HoldfastError('INVALID_OPTION', `the handler of '${type}' ${complaint}`, {
    field: 'handler',
  })
}

const parsedInput = (input: unknown): Payload => {
  try {
    return encodePayload(input, 'input', Number.POSITIVE_INFINITY)
  } catch (cause) {
    const message = cause instanceof Error ? cause.message : String(cause)
    throw new PermanentError(`what the schema made of the input cannot cross to an isolated handler: ${message}`, {
      cause,
    })
  }
}
