/** The handlers of a worker, by type: functions, or modules that run in child processes. */
import { HoldfastError } from '../../core/errors.ts'
import { PermanentError } from '../../core/failure.ts'
import { encodePayload, type Payload } from '../../core/payload.ts'
import { checkName } from '../../core/submission.ts'
import { asDefinition, type TaskDefinition } from '../definition.ts'
import type { Handler } from '../handler.ts'
import type { Tracing } from '../tracing.ts'
import type { Attempt } from './attempt.ts'
import { type IsolatedHandler, isIsolated, isolationOf } from './isolate/options.ts'
import type { IsolatedChildren } from './isolate/pool.ts'
import { childFile } from './isolate/start.ts'
import { type Middleware, withMiddleware } from './middleware.ts'
import { mustServe } from './options.ts'

interface Registered {
  readonly definition: TaskDefinition
  /** The handler as registered. */
  readonly plain: Handler
  /** With middleware and tracing around it. */
  readonly handler: Handler
  readonly isIsolated: boolean
}

export class Handlers {
  readonly #byType = new Map<string, Registered>()
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
    const definition = asDefinition(type)
    checkName(definition.type, 'type')
    mustServe(this.#queues, definition)
    const isolated = isIsolated(given)
    const handler = isolated ? this.#isolated(definition, given) : given
    if (typeof handler !== 'function')
      throw new HoldfastError('INVALID_OPTION', `the handler of '${definition.type}' is not a function`, {
        field: 'handler',
      })
    if (this.#byType.has(definition.type))
      throw new HoldfastError('INVALID_OPTION', `'${definition.type}' has a handler already`, { field: 'type' })
    const registered = { definition, plain: handler, isIsolated: isolated }
    this.#byType.set(definition.type, { ...registered, handler: this.#around(registered) })
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
