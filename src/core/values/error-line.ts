/** An error with its causes and parts as one line of text. It needs nothing of Node, so the remote client can use it. */
import type { ErrorFacts } from '../task.ts'

/** One line: `TypeError: fetch failed; caused by Error: connect ECONNREFUSED 127.0.0.1:1 (ECONNREFUSED)`. */
export const errorLine = (error: ErrorFacts): string => {
  const { name, message, code, detail, cause, errors } = error
  const first = message === '' ? name : `${name}: ${message}`
  const known = code === undefined || first.includes(code) ? '' : ` (${code})`
  const more = detail === undefined ? '' : `; ${detail}`
  const parts = errors === undefined ? '' : `; of ${errors.map(errorLine).join(' and ')}`
  return `${first}${known}${more}${parts}${cause === undefined ? '' : `; caused by ${errorLine(cause)}`}`
}
