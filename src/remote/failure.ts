/** Describes a thrown value in the form that the server accepts: name, message, code, detail, causes and the parts of an AggregateError. */
import type { ErrorFacts } from '../core/task.ts'

const MOST_CAUSES = 5
const MOST_PARTS = 4
const MAX_STACK = 4_000

export const failureOf = (thrown: unknown, depth = 0): ErrorFacts => {
  if (!(thrown instanceof Error)) return { name: 'Thrown', message: String(thrown) }
  const { name, message, stack, cause } = thrown
  const { code, detail, errors } = thrown as Readonly<Record<'code' | 'detail' | 'errors', unknown>> & Error
  const isDeep = depth >= MOST_CAUSES
  return {
    name,
    message,
    ...(typeof stack === 'string' ? { stack: stack.slice(0, MAX_STACK) } : null),
    ...(typeof code === 'string' ? { code } : null),
    ...(typeof detail === 'string' ? { detail } : null),
    ...(cause === undefined || isDeep ? null : { cause: failureOf(cause, depth + 1) }),
    // Parts of parts are rare, and would be too many.
    ...(Array.isArray(errors) && depth === 0
      ? { errors: errors.slice(0, MOST_PARTS).map((part) => failureOf(part, 1)) }
      : null),
  }
}
