/** Any logger with these four methods works: console, pino, winston. */

export interface Logger {
  debug(message: string, facts?: Record<string, unknown>): void
  info(message: string, facts?: Record<string, unknown>): void
  warn(message: string, facts?: Record<string, unknown>): void
  error(message: string, facts?: Record<string, unknown>): void
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

export const silentLogger: Logger = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }

/** The same logger with `facts` added to every line. */
export const withFacts = (logger: Logger, facts: Record<string, unknown>): Logger => ({
  debug: (message, more) => logger.debug(message, { ...facts, ...more }),
  info: (message, more) => logger.info(message, { ...facts, ...more }),
  warn: (message, more) => logger.warn(message, { ...facts, ...more }),
  error: (message, more) => logger.error(message, { ...facts, ...more }),
})
