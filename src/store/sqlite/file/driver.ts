/**
 * node:sqlite, loaded when a file is opened. Node 22 warns that it is experimental, once for each thread: there it was, on a user's standard
 * error, three times. The releases that we support have the API that we use, so this one warning is left out, and no other.
 */
type Sqlite = typeof import('node:sqlite')

/** An import statement would load it before any code of ours runs. */
const load = (): Sqlite => process.getBuiltinModule('node:sqlite')

export const loadSqlite = (from: () => Sqlite = load): Sqlite => {
  const emitWarning = process.emitWarning
  process.emitWarning = ((warning: string | Error, ...rest: never[]): void => {
    if (!String(warning).startsWith('SQLite is an experimental feature')) emitWarning.call(process, warning, ...rest)
  }) as typeof process.emitWarning
  try {
    return from()
  } finally {
    process.emitWarning = emitWarning
  }
}
