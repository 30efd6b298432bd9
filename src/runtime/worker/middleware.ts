/** Functions around each run of a worker, such as logging, context or measuring. */
import type { Handler, TaskContext } from '../handler.ts'

/**
 * Calls `next` to go on, with what comes after it and the handler at the end. What it returns is the output; what it throws
 * fails the run. Without a call of `next` the handler does not run.
 */
export type Middleware = (ctx: TaskContext, next: () => Promise<unknown>) => unknown

/** The first one is outermost. */
export const withMiddleware = (middleware: readonly Middleware[], handler: Handler): Handler =>
  middleware.reduceRight<Handler>(
    (inner, outer) => async (input, ctx) => {
      let isCalled = false
      return outer(ctx, async () => {
        if (isCalled) throw new Error('a middleware called next twice: the handler would run twice')
        isCalled = true
        return inner(input, ctx)
      })
    },
    handler,
  )
