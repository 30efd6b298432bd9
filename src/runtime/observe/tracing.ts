/** Spans for submit and run, if this process records spans. A tag of the task links the run's span to the submit's. */
import type { Tracing } from '../telemetry/tracing.ts'

/** The tag that carries the span of the submit to the process that runs the task, as W3C trace context. */
export const TRACE_TAG = 'traceparent'

/** The global in which every copy of the API package keeps what the application has registered. */
const REGISTERED = Symbol.for('opentelemetry.js.api.1')

/** Returns null without importing the package if nothing is registered. */
export const findTracing = async (): Promise<Tracing | null> => {
  if (!(REGISTERED in globalThis)) return null
  try {
    const api = await import('@opentelemetry/api')
    return (await import('./open-telemetry.ts')).openTelemetry(api)
  } catch {
    // Registered by a copy of the package that cannot be imported from here.
    return null
  }
}
