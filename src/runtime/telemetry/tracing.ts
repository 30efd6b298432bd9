/** Spans for submit and run, as the rest of the runtime sees them. */
import type { SubmitOptions } from '../../core/submission.ts'
import type { Handler } from '../handler.ts'

export interface Tracing {
  /** `work` passes its tags through `tagged`, which adds the trace. It is called synchronously, because a transaction cannot wait. */
  submit<T>(what: Traced, work: (tagged: Tagging) => Promise<T>): Promise<T>
  /** Wraps a handler so that its runs are recorded. */
  handler(type: string, handler: Handler): Handler
}

export type Tagging = (options: SubmitOptions) => SubmitOptions

export interface Traced {
  readonly type: string
  readonly queue: string
}
