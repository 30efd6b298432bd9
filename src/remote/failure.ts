/** Describes a thrown value in the form that the server accepts: name, message, code and causes. */

interface Failure {
  readonly name: string
  readonly message: string
  readonly stack?: string
  readonly code?: string
  readonly cause?: Failure
}

const MOST_CAUSES = 5
const MAX_STACK = 4_000

export const failureOf = (thrown: unknown, depth = 0): Failure => {
  if (!(thrown instanceof Error)) return { name: 'Thrown', message: String(thrown) }
  const { name, message, stack, cause } = thrown
  const { code } = thrown as { readonly code?: unknown }
  return {
    name,
    message,
    ...(typeof stack === 'string' ? { stack: stack.slice(0, MAX_STACK) } : null),
    ...(typeof code === 'string' ? { code } : null),
    ...(cause === undefined || depth >= MOST_CAUSES ? null : { cause: failureOf(cause, depth + 1) }),
  }
}
