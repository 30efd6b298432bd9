/** Functions around each run of a worker, for example for logging, context or metrics. */
import type { Handler, TaskContext } from '../handler.ts'

/**
 * Call `next` to run the following middleware and finally the handler; without it the handler does not run. The returned
 * value is the output of the run; a thrown error fails the run.
 */
export type Middleware = (ctx: TaskContext, next: () => Promise<unknown>) => unknown

/** The first middleware is the outermost. */
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
