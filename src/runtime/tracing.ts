/** Spans for submit and run, as the rest of the runtime sees them. */
import type { SubmitOptions } from '../core/submission.ts'
import type { Handler } from './handler.ts'

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
