/** Translates SQLite's result codes to Holdfast's. */
import { type Code, HoldfastError } from '../../core/errors.ts'

interface SqliteError extends Error {
  readonly errcode: number
}

const PRIMARY: Readonly<Record<number, Code>> = {
  5: 'STORE_BUSY',
  6: 'STORE_BUSY',
  8: 'STORE_READ_ONLY',
  10: 'STORE_UNAVAILABLE',
  11: 'STORE_CORRUPT',
  13: 'STORE_FULL',
  14: 'STORE_UNAVAILABLE',
  26: 'STORE_CORRUPT',
}

/** What can be done about a damaged file. */
export const RECOVER =
  'Do not delete the file. Stop all workers, copy it with its -wal, and restore a backup, or recover readable data with `sqlite3 FILE .recover`.'

/** SQLite noticed that the open file is no longer the one at its path. */
const READONLY_DBMOVED = 1032
const IOERR_WRITE = 778
/** Messages about a damaged header or schema for which SQLite has no specific code. */
const DAMAGED = /unsupported file format|no such (table|index): holdfast_/

const isSqliteError = (error: unknown): error is SqliteError =>
  error instanceof Error && typeof (error as Partial<SqliteError>).errcode === 'number'

export const isBusy = (error: unknown): boolean => isSqliteError(error) && [5, 6].includes(error.errcode & 0xff)

const CONSTRAINT_UNIQUE = 2067

export const isTaken = (error: unknown): boolean => isSqliteError(error) && error.errcode === CONSTRAINT_UNIQUE

export const asHoldfastError = (error: unknown, address: string): HoldfastError => {
  if (error instanceof HoldfastError) return error
  if (!isSqliteError(error)) {
    const system = error as NodeJS.ErrnoException
    const code: Code =
      system?.code === 'EACCES' || system?.code === 'EROFS' || system?.code === 'EPERM'
        ? 'STORE_READ_ONLY'
        : system?.code === 'ENOENT' || system?.code === 'ENOTDIR'
          ? 'STORE_NOT_FOUND'
          : system?.code === 'ENOSPC'
            ? 'STORE_FULL'
            : 'INTERNAL'
    const message = system instanceof Error ? system.message : String(error)
    return new HoldfastError(code, `${address}: ${message}${adviceFor(code)}`, {}, error)
  }
  const code = codeOf(error)
  return new HoldfastError(
    code,
    `${address}: ${error.message} (SQLite ${error.errcode})${adviceFor(code)}`,
    { errcode: error.errcode, ...(code === 'STORE_CORRUPT' ? { advice: RECOVER } : null) },
    error,
  )
}

const adviceFor = (code: Code): string =>
  code === 'STORE_READ_ONLY' ? ': check owner and permissions of the file and its folder' : ''

const codeOf = ({ errcode, message }: SqliteError): Code => {
  if (errcode === 1 && DAMAGED.test(message)) return 'STORE_CORRUPT'
  if (errcode === READONLY_DBMOVED) return 'STORE_IDENTITY_CHANGED'
  // A disk quota or RLIMIT is reported as a failed write, not as FULL.
  if (errcode === IOERR_WRITE) return 'STORE_FULL'
  return PRIMARY[errcode & 0xff] ?? 'INTERNAL'
}
