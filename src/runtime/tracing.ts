/** Spans for submit and run, when somebody in this process records them. The run's span is linked to the submit's through the task. */
import type { SubmitOptions } from '../core/submission.ts'
import type { Handler } from './attempt.ts'

/** The name of the tag that carries the submit's span from one process to another: W3C trace context. */
export const TRACE_TAG = 'traceparent'

export interface Tracing {
  /** `work` submits with the tags that `tagged` makes of its own. It is called at once: a transaction does not wait. */
  submit<T>(what: Traced, work: (tagged: Tagging) => Promise<T>): Promise<T>
  /** The same handler, its runs recorded. */
  handler(type: string, handler: Handler): Handler
}

export type Tagging = (options: SubmitOptions) => SubmitOptions

export interface Traced {
  readonly type: string
  readonly queue: string
}

/** Where the API package keeps what the application has registered, whichever copy of it. */
const REGISTERED = Symbol.for('opentelemetry.js.api.1')

/** null, without having looked for the package, when nothing is registered: that costs nothing. */
export const findTracing = async (): Promise<Tracing | null> => {
  if (!(REGISTERED in globalThis)) return null
  try {
    return (await import('./open-telemetry.ts')).openTelemetry()
  } catch {
    // Registered by a copy that we cannot reach.
    return null
  }
}
