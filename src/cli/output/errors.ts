/** Turns any thrown value into a message on standard error and an exit code. */
import { CODES, type Code, HoldfastError, isHoldfastError } from '../../index.ts'
import { EXIT_CODES, type ExitCode } from './exit-codes.ts'
import { err, paint, printable } from './render.ts'

/** What is said of any thrown value. */
export const messageOf = (thrown: unknown): string => (thrown instanceof Error ? thrown.message : String(thrown))

export interface ErrorFacts {
  readonly code: Code
  readonly message: string
  readonly fix: string
}

const asHoldfastError = (thrown: unknown): HoldfastError =>
  isHoldfastError(thrown) ? thrown : new HoldfastError('INTERNAL', messageOf(thrown), {}, thrown)

/** Advice for this case is better than the advice for its code. */
export const errorFacts = ({ code, message, fix }: HoldfastError): ErrorFacts => ({
  code,
  message,
  fix: fix === CODES[code].fix ? (FIXES[code] ?? fix) : fix,
})

/** Replaces API advice that does not help at a shell. */
const FIXES: Readonly<Partial<Record<Code, string>>> = {
  STORE_NOT_FOUND:
    'Check --url or HOLDFAST_URL. `holdfast init` creates a store; submit, worker, schedule create and demo create a SQLite file.',
  NO_HANDLER: 'Export handlers from the module: see `holdfast worker --help`.',
  GROUP_NOT_FOUND: 'List the groups with `holdfast dead --groups`; its tasks may already have been replayed or purged.',
  PAYLOAD_TOO_LARGE: 'Store the large value elsewhere and submit a reference.',
  WORKERS_LIVE: 'Stop them (a killed worker stays registered for 30 s), or move with --live while they run.',
  TASK_NOT_FOUND: 'Check the id and the store (--url or HOLDFAST_URL); delete, prune or retention may have removed it.',
}

/** On standard error: two lines for people, one object with --json. */
export const report = (thrown: unknown, json: boolean): ExitCode => {
  const error = asHoldfastError(thrown)
  const { code, message, fix } = errorFacts(error)
  if (json) err(JSON.stringify({ error: { code, message, fix } }))
  else {
    err(`${paint('red', 'error', process.stderr)}: ${printable(message)} ${paint('dim', `(${code})`, process.stderr)}`)
    err(`  ${fix}`)
    const { cause, details } = error
    const isSomebodysCode = code === 'INTERNAL' || details['field'] === 'MODULE'
    if (isSomebodysCode && cause instanceof Error && cause.stack !== undefined) err(cause.stack)
  }
  return EXIT_CODES[code]
}
