/** Spans for submit and run, when this process records spans. The run's span is linked to the submit's through the task. */
import type { Tracing } from '../tracing.ts'

/** The name of the tag that carries the submit's span from one process to another: W3C trace context. */
export const TRACE_TAG = 'traceparent'

/** Where the API package keeps what the application has registered, whichever copy of it. */
const REGISTERED = Symbol.for('opentelemetry.js.api.1')

/** null, without having looked for the package, when nothing is registered: that costs nothing. */
export const findTracing = async (): Promise<Tracing | null> => {
  if (!(REGISTERED in globalThis)) return null
  try {
    const api = await import('@opentelemetry/api')
    return (await import('./open-telemetry.ts')).openTelemetry(api)
  } catch {
    // Registered by a copy that we cannot reach.
    return null
  }
}
