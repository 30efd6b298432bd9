/** The log of a client: its interface, the default that writes to stderr, and the check of a caller's own. */
import { HoldfastError } from '../../core/errors.ts'

/**
 * Where a client writes its lines. `console` and winston work as they are. A logger that takes the facts first, as pino does, would drop them:
 * pass an object that turns the arguments round.
 */
export interface Logger {
  /** What rarely matters. */
  debug(message: string, facts?: Record<string, unknown>): void
  /** What was created or repaired. */
  info(message: string, facts?: Record<string, unknown>): void
  /** A failed run, a store that answers late: worth a look. */
  warn(message: string, facts?: Record<string, unknown>): void
  /** A new dead letter, a lost store: needs somebody. */
  error(message: string, facts?: Record<string, unknown>): void
}

const LEVELS = ['debug', 'info', 'warn', 'error'] as const

/** Checked early: most lines are written where an exception would be unhandled and end the process. */
export const checkLogger = (logger: Logger): void => {
  const missing = LEVELS.filter((level) => typeof (logger as Partial<Logger> | null)?.[level] !== 'function')
  if (missing.length === 0) return
  throw new HoldfastError(
    'INVALID_OPTION',
    `logger has no function ${missing.join(', ')}: to log nothing, pass silentLogger of 'holdfast'`,
    { field: 'logger' },
  )
}

const line = (level: string, message: string, facts?: Record<string, unknown>): void => {
  process.stderr.write(`holdfast ${level}: ${message}${facts === undefined ? '' : ` ${JSON.stringify(facts)}`}\n`)
}

/** Writes plain lines to standard error, so that the program's standard output stays clean. */
export const stderrLogger: Logger = {
  debug: () => {},
  info: (message, facts) => line('info', message, facts),
  warn: (message, facts) => line('warn', message, facts),
  error: (message, facts) => line('error', message, facts),
}

/** Logs nothing. */
export const silentLogger: Logger = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }

/** The same logger with `facts` added to every line. */
export const withFacts = (logger: Logger, facts: Record<string, unknown>): Logger => ({
  debug: (message, more) => logger.debug(message, { ...facts, ...more }),
  info: (message, more) => logger.info(message, { ...facts, ...more }),
  warn: (message, more) => logger.warn(message, { ...facts, ...more }),
  error: (message, more) => logger.error(message, { ...facts, ...more }),
})
