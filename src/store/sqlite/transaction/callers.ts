/**
 * The database in which the caller has a transaction open, as a DatabaseSync. better-sqlite3, and what drizzle keeps of it, are recognised by
 * their shape.
 */
import type { DatabaseSync } from 'node:sqlite'

/** null: of no known library. */
export const databaseOf = (tx: unknown): DatabaseSync | null => {
  if (typeof tx !== 'object' || tx === null) return null
  if (isDatabase(tx)) return 'inTransaction' in tx ? ofBetterSqlite(tx as BetterSqlite) : (tx as DatabaseSync)
  const { session } = tx as { readonly session?: { readonly client?: unknown } }
  return session?.client === undefined ? null : databaseOf(session.client)
}

const isDatabase = (tx: object): boolean =>
  typeof (tx as DatabaseSync).prepare === 'function' && typeof (tx as DatabaseSync).exec === 'function'

interface BetterStatement {
  /** The statement returns rows. */
  readonly reader: boolean
  raw(on: boolean): BetterStatement
  get(...values: unknown[]): unknown
  all(...values: unknown[]): unknown[]
  run(...values: unknown[]): unknown
}

interface BetterSqlite {
  readonly name: string
  readonly memory: boolean
  readonly inTransaction: boolean
  exec(sql: string): unknown
  prepare(sql: string): BetterStatement
}

/** The same object for the same database, so that its statements are prepared once. */
const wrapped = new WeakMap<BetterSqlite, DatabaseSync>()

/** What the store uses of a DatabaseSync. */
const ofBetterSqlite = (db: BetterSqlite): DatabaseSync => {
  const known = wrapped.get(db)
  if (known !== undefined) return known
  const made = {
    get isTransaction() {
      return db.inTransaction
    },
    location: () => (db.memory ? null : db.name),
    exec: (sql: string) => void db.exec(sql),
    prepare: (sql: string) => statementOf(db.prepare(sql)),
  } as unknown as DatabaseSync
  wrapped.set(db, made)
  return made
}

const statementOf = (statement: BetterStatement): object => ({
  setReturnArrays: (on: boolean) => {
    if (statement.reader) statement.raw(on)
  },
  get: (...values: unknown[]) => statement.get(...values),
  all: (...values: unknown[]) => statement.all(...values),
  run: (...values: unknown[]) => statement.run(...values),
})
